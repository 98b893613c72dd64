"""Shrinks a case that shows a fault, as long as it shows the same one."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson


def shrunk(finding: Any, same: Callable[[Any], Any], seconds: float) -> Any:
    """`same` returns the finding of a smaller case, or None if the fault does not occur."""
    end = time.monotonic() + seconds
    best, size = finding, _size(finding.case)
    progress = True
    while progress:
        progress = False
        for case in candidates(best.case):
            if time.monotonic() > end:
                return best
            if _size(case) < size and (found := same(case)):
                best, size, progress = found, _size(case), True
                break
    return best


def _size(case: Any) -> int:
    return len(orjson.dumps(case))


def candidates(value: Any) -> Iterator[Any]:
    """Yield smaller values for a value, the smallest first."""
    if isinstance(value, dict):
        yield from ({key: value[key]} for key in value if len(value) > 2)
        yield from (_without(value, key) for key in value)
        for key in value:
            for smaller in candidates(value[key]):
                yield value | {key: smaller}
    elif isinstance(value, list):
        yield from _parts(value)
        for at, item in enumerate(value[:50]):
            for smaller in candidates(item):
                yield [*value[:at], smaller, *value[at + 1 :]]
    elif isinstance(value, str):
        yield from _parts(value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and value not in (0, 1):
        yield 0
        yield 1


def _without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != key}


def _parts(value: Any) -> Iterator[Any]:
    """Yield a sequence without one part of it: halves first, then ever smaller parts."""
    size = len(value)
    while size:
        for start in range(0, len(value), size):
            yield value[:start] + value[start + size :]
        if len(value) // size > 200:
            return
        size //= 2
