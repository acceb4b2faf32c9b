"""The base of all settings: however one is made, a mistake is a `MemoryConfigurationError`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, dataclass_transform

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrata_memory.config.problems import InvalidSettingsError, problems_of
from orchestrata_memory.errors import MemoryConfigurationError

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

T = TypeVar("T")


def _made(model: type[BaseModel], make: Callable[[], T]) -> T:
    try:
        return make()
    except ValidationError as error:
        told = InvalidSettingsError(model.__name__, problems_of(error, model))
    # Raised outside, so that the error that knows the values is not its context.
    raise told


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class _Checked(ModelMetaclass):
    """Watches the constructor.

    Not by overriding it: pydantic would call that for inner groups too, and their problems could
    not be collected.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any model's constructor
        construct = super().__call__
        return _made(cast("type[BaseModel]", self), lambda: construct(*args, **kwargs))


class Settings(BaseModel, metaclass=_Checked):
    """Base of every group: unknown fields are errors, values never change.

    Raises:
        MemoryConfigurationError: Names each field and what is wrong with it, never its value.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True
    )

    def __setattr__(self, name: str, value: object) -> None:
        raise self._fixed(name)

    def __delattr__(self, name: str) -> None:
        raise self._fixed(name)

    def _fixed(self, name: str) -> MemoryConfigurationError:
        return MemoryConfigurationError(
            f"{type(self).__name__}: {name}: settings never change; make others, "
            "such as by model_copy(update=...)"
        )

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:  # noqa: ANN401 - as in pydantic
        return _made(cls, lambda: super(Settings, cls).model_validate(obj, **options))

    @classmethod
    def model_validate_json(
        cls,
        json_data: str | bytes | bytearray,
        **options: Any,  # noqa: ANN401 - as in pydantic
    ) -> Self:
        return _made(cls, lambda: super(Settings, cls).model_validate_json(json_data, **options))

    @classmethod
    def model_validate_strings(cls, obj: Any, **options: Any) -> Self:  # noqa: ANN401 - likewise
        return _made(cls, lambda: super(Settings, cls).model_validate_strings(obj, **options))
