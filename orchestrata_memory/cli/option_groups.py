"""Options that belong together and that several commands take, declared once."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import get_type_hints


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionGroup:
    """Base of dataclasses whose fields are options.

    A command that has a parameter of such a class takes all its options and is given one value.
    """


Groups = Mapping[str, type[OptionGroup]]


def expanded(own: Iterable[inspect.Parameter]) -> tuple[list[inspect.Parameter], Groups]:
    """Parameters with every group's options in its place, and which names are groups."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[OptionGroup]] = {}
    for parameter in own:
        kind = parameter.annotation
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            groups[parameter.name] = kind
            parameters += _options(kind)
        else:
            parameters.append(parameter)
    return parameters, groups


def _options(group: type[OptionGroup]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[item.name],
            default=_default(group, item),
        )
        for item in fields(group)
    ]


def _default(group: type[OptionGroup], item: Field[object]) -> object:
    """A field's default; without one the option is required.

    Raises:
        TypeError: It is made by a factory, which an option cannot show.
    """
    if item.default_factory is not MISSING:
        raise TypeError(f"{group.__name__}.{item.name}: an option's default is a value")
    return inspect.Parameter.empty if item.default is MISSING else item.default


def collected(arguments: Mapping[str, object], groups: Groups) -> dict[str, object]:
    """Arguments with every group's options put together again."""
    left = dict(arguments)
    made = {
        name: group(**{item.name: left.pop(item.name) for item in fields(group)})
        for name, group in groups.items()
    }
    return {**left, **made}
