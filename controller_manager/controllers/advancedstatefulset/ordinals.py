"""Which ordinals the pods of a set have, where some are reserved."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from apimachinery import gotext
from apimachinery.intstr import IntOrString

_END: Final = 2**31
"""The first ordinal that no pod can have."""


def ordinals(start: int, replicas: int, reserved: Sequence[IntOrString]) -> Collection[int]:
    """So many from the first, in order, without the reserved ones: others come behind for them."""
    return dict.fromkeys(islice(_free(start, _ranges(reserved)), replicas)).keys()


def _free(start: int, reserved: Iterable[range]) -> Iterator[int]:
    for taken in sorted(reserved, key=lambda it: it.start):
        yield from range(start, min(taken.start, _END))
        start = max(start, taken.stop)
    yield from range(start, _END)


def _ranges(reserved: Sequence[IntOrString]) -> list[range]:
    """Of a list in which one cannot be read, none is reserved, as upstream has it: servers accept no such list."""
    ranges: list[range] = []
    for one in reserved:
        found = range(one, one + 1) if isinstance(one, int) else _range(one)
        if not found:
            return []
        ranges.append(found)
    return ranges


def _range(text: str) -> range:
    """`3-5` are three; empty if it is no range."""
    first, dash, last = text.partition("-")
    try:
        bounds = gotext.parse_int(first), gotext.parse_int(last)
    except gotext.NumberError:
        return range(0)
    return range(bounds[0], bounds[1] + 1) if dash else range(0)
