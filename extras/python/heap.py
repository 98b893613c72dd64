"""The memory that the values of a simulated Python script take in this process: what can still be reached is counted."""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from gc import get_referents
from itertools import chain, count, cycle, product, repeat
from sys import getrefcount, getsizeof
from types import CellType, FunctionType, GeneratorType
from typing import Any, Final

from .errors import PythonError
from .values import (
    Builtin,
    BulkText,
    Frame,
    Function,
    GeneratorObject,
    Instance,
    Method,
    Module,
    NativeObject,
    PyClass,
    Scope,
    Super,
    Wrapper,
    YieldedValue,
)
from .values import Iterator as StepIterator

_OWN_REFERENCES: Final = 4
"""The references to a value by the variables of this module, while it is counted."""
_SEQUENCES: Final = (list, tuple)
_PART: Final = 100
_ATOMS: Final = frozenset([int, float, complex, str, bytes, bytearray])
_FOLLOWED: Final[tuple[type, ...]] = (
    list, tuple, dict, set, frozenset, deque, FunctionType, GeneratorType, CellType, BulkText, Builtin, Frame, Function,
    GeneratorObject, Instance, Method, Module, NativeObject, PyClass, PythonError, Scope, StepIterator, Super, Wrapper,
    YieldedValue, chain, count, cycle, enumerate, map, product, repeat, reversed, zip, type(iter([])), type(iter(())),
    type(iter({})), type(iter({}.values())), type(iter({}.items())), type(iter(set())), type(iter(deque())), type(reversed([])),
)  # fmt: skip


@cache
def _is_followed(kind: Hashable) -> bool:
    return isinstance(kind, type) and issubclass(kind, _FOLLOWED)


def sizes(roots: Iterable[Any]) -> Iterator[int]:
    """Yield the size of each value that can be reached, and 0 for one that was visited; of a value with many references, the share of one of them."""
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        value = pending.pop()
        kind: Any = type(value)
        if kind in _ATOMS:
            yield getsizeof(value) // max(getrefcount(value) - _OWN_REFERENCES, 1)
        elif _is_followed(kind) and id(value) not in seen:
            seen.add(id(value))
            if kind in _SEQUENCES:
                for start in range(0, len(value), _PART):
                    part = value[start : start + _PART]
                    pending += dict(zip(map(id, part), part, strict=True)).values()  # each value once
                    yield 0
            else:  # Its globals are those of this process.
                pending += value.__closure__ or () if kind is FunctionType else get_referents(value)
            yield getsizeof(value)
        else:
            yield 0
