"""Whether a function's cost is linear in its input: CPU time of the thread at a size and at twice the size.

Other load makes times longer and never shorter, so the least of several runs counts; a bad result
is measured again at larger sizes, where constant costs matter less.
"""

import gc
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import thread_time
from typing import Any

RATIO = 2.5
"""The maximum cost ratio for twice the input: 2 is linear, 4 is quadratic."""

_RUNS = 3
_LONG = 0.1
"""Seconds that one run measures well enough, unless the result is bad."""
_SMALL = (*range(4, 64, 4), 160, 640, 2_560)
"""An exponential cost grows by 16 between two of the first sizes: the first run that is too long still ends."""
_TOO_LONG = 0.3
"""Seconds for a few characters or items: an exponential cost is found before it becomes endless."""


_LARGER = 0.5
"""Seconds up to which a larger size is tried: beyond the size at which the caches of the processor overflow, cost is linear again."""


class Growth(Exception):
    """Cost grows faster than the input."""


def size_of_run(quick: int, full: int) -> int:
    """Return the full size if MOCKUBE_FULL_SIZE is set. Twice as much is about the largest body, 3 MiB."""
    return full if os.environ.get("MOCKUBE_FULL_SIZE") else quick


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage: a collection costs what others have allocated."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cost(run: Callable[[Any], object], value: Any, *, runs: int = 1) -> float:
    """Return the least seconds of CPU time for `run(value)` in this many runs."""
    minimum = math.inf
    with without_collections():
        for _ in range(runs):
            start = thread_time()
            run(value)
            minimum = min(minimum, thread_time() - start)
    return minimum


def check_linear(
    make: Callable[[int], Any],
    run: Callable[[Any], object],
    size: int,
    *,
    negligible: float = 0.002,
    rounds: int = 4,
    too_long: float = _TOO_LONG,
) -> None:
    """Raise `Growth` if `run(make(2 * size))` costs more than 2.5 times what `run(make(size))` costs.

    What costs less than `negligible` seconds at twice the size is linear enough.
    """
    _check_small(make, run, size, too_long)
    found = []
    for _ in range(rounds):
        double = make(2 * size)
        twice = cost(run, double)
        if twice < negligible:
            return
        single = make(size)
        once = cost(run, single, runs=1 if twice > _LONG else _RUNS)
        if twice > RATIO * once:
            once = min(once, cost(run, single, runs=_RUNS))
            twice = min(twice, cost(run, double, runs=_RUNS))
        if twice <= max(RATIO * once, negligible):
            return
        found.append(f"{size}: {once * 1000:.1f} ms, {2 * size}: {twice * 1000:.1f} ms")
        size = 2 * size if twice < _LARGER else size
    raise Growth("; ".join(found))


def _check_small(
    make: Callable[[int], Any], run: Callable[[Any], object], size: int, too_long: float
) -> None:
    for small in _SMALL:
        if small >= size:
            return
        value = make(small)
        # One-time costs, such as compiling a type, do not count.
        if cost(run, value) > too_long and (took := cost(run, value)) > too_long:
            raise Growth(f"{small}: {took * 1000:.0f} ms")


def check_growth(
    sized_input: Any, make: Callable[[int], Any], run: Callable[[Any], object], size: int, *, enough: float
) -> None:
    """Raise `Growth` if twice the size costs more than 2.5 times as much, there and at larger sizes.

    For many cases, most of which are quick: where `sized_input`, which is `make(size)`, costs `enough` seconds at most, that is all.
    """
    twice = cost(run, sized_input)
    if twice <= enough or twice <= RATIO * cost(run, make(size // 2), runs=1 if twice > _LONG else 2):
        return
    found = []
    for double in (size, 2 * size, 4 * size):
        once, twice = (cost(run, make(each), runs=_RUNS) for each in (double // 2, double))
        if twice <= max(RATIO * once, enough):
            return
        found.append(f"{double // 2}: {once * 1000:.1f} ms, {double}: {twice * 1000:.1f} ms")
    raise Growth("; ".join(found))
