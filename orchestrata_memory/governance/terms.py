"""Terms for Prolog, built through its foreign interface and never out of text.

An id is handed over as the bytes of one atom, so whatever it holds (quotes, newlines, ``), halt.``)
it stays one constant; no text of a caller is ever parsed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_STRING: Final = 6
_REP_UTF8: Final = 0x00100000
_CVT_TEXT: Final = 0x00000001 | 0x00000002 | 0x00000010 | 0x00000008  # atom, string, numbers
_CVT_WRITE: Final = 0x00000080
_NODEBUG: Final = 0x04
_CATCH_EXCEPTION: Final = 0x08
_ERROR_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class Text:
    """A Prolog string."""

    value: str


@dataclass(frozen=True, slots=True)
class Compound:
    """A compound term."""

    name: str
    arguments: tuple[Any, ...]


class PrologFailure(Exception):  # noqa: N818 - a goal that fails is no error of Prolog's
    """A goal of the driver failed or raised; the text holds no content."""


class Prolog:
    """Calls of one Prolog engine; every method must run on the engine's own thread.

    Building and reading terms keeps Python's interpreter lock (each call takes well under a
    microsecond, and giving the lock away hundreds of times would wait for it as often); running a
    goal gives it away once.
    """

    def __init__(self, library: str) -> None:
        self._held = _declare(ctypes.PyDLL(library))
        self._released = _declare(ctypes.CDLL(library))
        self._functors: dict[tuple[str, int], int] = {}
        self._predicates: dict[tuple[str, int], int] = {}

    def attach(self) -> None:
        """Give this thread a Prolog engine unless it has one."""
        if self._held.PL_thread_self() < 0 and self._held.PL_thread_attach_engine(None) < 0:
            raise PrologFailure("no Prolog engine for this thread")

    def run(self, module: str, name: str, *arguments: object, outputs: int = 0) -> list[Any]:
        """Call ``module:name(arguments…, outputs…)`` once and read its outputs.

        Returns:
            One value an output: str for an atom, string or number, list for a list, `Compound`.

        Raises:
            PrologFailure: The goal failed or raised.
        """
        lib = self._held
        arity = len(arguments) + outputs
        frame = lib.PL_open_foreign_frame()
        try:
            first = lib.PL_new_term_refs(arity)
            for offset, argument in enumerate(arguments):
                self._put(first + offset, argument)
            query = lib.PL_open_query(
                None, _NODEBUG | _CATCH_EXCEPTION, self._predicate(module, name, arity), first
            )
            try:
                if not self._released.PL_next_solution(query):
                    raise PrologFailure(f"{name}/{arity}: {self._problem(query)}")
                return [self._read(first + len(arguments) + index) for index in range(outputs)]
            finally:
                lib.PL_close_query(query)
        finally:
            lib.PL_discard_foreign_frame(frame)

    # --- building ------------------------------------------------------------------------
    def _put(self, ref: int, value: object) -> None:
        lib = self._held
        if isinstance(value, str):
            self._put_atom(ref, value)
        elif isinstance(value, Compound):
            self._put_compound(ref, value)
        elif isinstance(value, (list, tuple)):
            self._put_list(ref, value)
        elif isinstance(value, float):
            lib.PL_put_float(ref, value)
        elif isinstance(value, int):
            lib.PL_put_int64(ref, value)
        elif isinstance(value, Text):
            data = value.value.encode()
            lib.PL_put_chars(ref, _STRING | _REP_UTF8, len(data), data)
        else:
            raise TypeError(f"no term for {type(value).__name__}")

    def _put_atom(self, ref: int, value: str) -> None:
        # Not PL_put_chars: the atoms it makes are never collected (seen in 9.0.4).
        lib, data = self._held, value.encode()
        atom = lib.PL_new_atom_mbchars(_REP_UTF8, len(data), data)
        lib.PL_put_atom(ref, atom)
        lib.PL_unregister_atom(atom)

    def _put_compound(self, ref: int, value: Compound) -> None:
        arity = len(value.arguments)
        first = self._held.PL_new_term_refs(arity)
        for offset, argument in enumerate(value.arguments):
            self._put(first + offset, argument)
        self._held.PL_cons_functor_v(ref, self._functor(value.name, arity), first)

    def _put_list(self, ref: int, values: Sequence[object]) -> None:
        lib = self._held
        lib.PL_put_nil(ref)
        if not values:
            return
        head = lib.PL_new_term_ref()
        for value in reversed(values):
            self._put(head, value)
            lib.PL_cons_list(ref, head, ref)

    def _functor(self, name: str, arity: int) -> int:
        functor = self._functors.get((name, arity))
        if functor is None:
            functor = self._held.PL_new_functor(self._held.PL_new_atom(name.encode()), arity)
            self._functors[name, arity] = functor
        return functor

    def _predicate(self, module: str, name: str, arity: int) -> int:
        predicate = self._predicates.get((name, arity))
        if predicate is None:
            predicate = self._held.PL_predicate(name.encode(), arity, module.encode())
            self._predicates[name, arity] = predicate
        return predicate

    # --- reading -------------------------------------------------------------------------
    def _read(self, ref: int) -> str | list[Any] | Compound:
        lib = self._held
        if lib.PL_get_nil(ref):
            return []
        if lib.PL_is_pair(ref):
            return self._read_list(ref)
        text = self._text(ref, _CVT_TEXT)
        if text is not None:
            return text
        return self._read_compound(ref)

    def _read_list(self, ref: int) -> list[Any]:
        lib = self._held
        values = []
        rest, head = lib.PL_copy_term_ref(ref), lib.PL_new_term_ref()
        while lib.PL_get_list(rest, head, rest):
            values.append(self._read(head))
        return values

    def _read_compound(self, ref: int) -> Compound:
        lib = self._held
        name, arity = ctypes.c_size_t(), ctypes.c_size_t()
        if not lib.PL_get_name_arity(ref, ctypes.byref(name), ctypes.byref(arity)):
            raise PrologFailure("an answer without a value")
        argument = lib.PL_new_term_ref()
        arguments = []
        for index in range(arity.value):
            lib.PL_get_arg(index + 1, ref, argument)
            arguments.append(self._read(argument))
        text = lib.PL_atom_chars(name.value).decode()
        return Compound(text, tuple(arguments))

    def _text(self, ref: int, kinds: int) -> str | None:
        size, data = ctypes.c_size_t(), ctypes.c_void_p()
        if not self._held.PL_get_nchars(
            ref, ctypes.byref(size), ctypes.byref(data), kinds | _REP_UTF8
        ):
            return None
        return ctypes.string_at(data, size.value).decode()

    def _problem(self, query: int) -> str:
        exception = self._held.PL_exception(query)
        if not exception:
            return "no answer"
        text = self._text(exception, _CVT_TEXT | _CVT_WRITE)
        return (text or "an exception")[:_ERROR_TEXT]


_TERM = ctypes.c_size_t
_TERM_POINTER = ctypes.POINTER(ctypes.c_size_t)
_SIGNATURES: Final[dict[str, tuple[Any, list[Any]]]] = {
    "PL_thread_self": (ctypes.c_int, []),
    "PL_thread_attach_engine": (ctypes.c_int, [ctypes.c_void_p]),
    "PL_open_foreign_frame": (_TERM, []),
    "PL_discard_foreign_frame": (None, [_TERM]),
    "PL_new_term_ref": (_TERM, []),
    "PL_new_term_refs": (_TERM, [ctypes.c_int]),
    "PL_copy_term_ref": (_TERM, [_TERM]),
    "PL_new_atom": (_TERM, [ctypes.c_char_p]),
    "PL_new_atom_mbchars": (_TERM, [ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p]),
    "PL_put_atom": (ctypes.c_int, [_TERM, _TERM]),
    "PL_unregister_atom": (None, [_TERM]),
    "PL_atom_chars": (ctypes.c_char_p, [_TERM]),
    "PL_new_functor": (_TERM, [_TERM, ctypes.c_size_t]),
    "PL_put_chars": (ctypes.c_int, [_TERM, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p]),
    "PL_put_float": (ctypes.c_int, [_TERM, ctypes.c_double]),
    "PL_put_int64": (ctypes.c_int, [_TERM, ctypes.c_int64]),
    "PL_put_nil": (ctypes.c_int, [_TERM]),
    "PL_cons_functor_v": (ctypes.c_int, [_TERM, _TERM, _TERM]),
    "PL_cons_list": (ctypes.c_int, [_TERM, _TERM, _TERM]),
    "PL_get_nil": (ctypes.c_int, [_TERM]),
    "PL_is_pair": (ctypes.c_int, [_TERM]),
    "PL_get_list": (ctypes.c_int, [_TERM, _TERM, _TERM]),
    "PL_get_name_arity": (ctypes.c_int, [_TERM, _TERM_POINTER, _TERM_POINTER]),
    "PL_get_arg": (ctypes.c_int, [ctypes.c_size_t, _TERM, _TERM]),
    "PL_get_nchars": (
        ctypes.c_int,
        [_TERM, _TERM_POINTER, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint],
    ),
    "PL_predicate": (ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p]),
    "PL_open_query": (_TERM, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, _TERM]),
    "PL_next_solution": (ctypes.c_int, [_TERM]),
    "PL_close_query": (ctypes.c_int, [_TERM]),
    "PL_exception": (_TERM, [_TERM]),
}


def _declare(library: ctypes.CDLL) -> Any:  # noqa: ANN401 - ctypes knows no types of its own
    """Tell ctypes the signatures of what is used; integers would be cut to 32 bits otherwise."""
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
