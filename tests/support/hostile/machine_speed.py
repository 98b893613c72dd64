"""How fast this machine is now: bounds of processor time are for a quiet machine, and a busy or an old one takes longer for the same."""

from statistics import mean
from time import thread_time

from tests.support.hostile.doubling import without_collections

_SECONDS = 0.0043
"""What the work of `_work` takes on the machine of the bounds, when it is quiet."""
_RUNS = 10


def allowed(seconds: float) -> float:
    """Return how long that takes on this machine now which takes so many seconds on the machine of the bounds, or longer."""
    with without_collections():
        return seconds * max(1.0, mean(_work() for _ in range(_RUNS)) / _SECONDS)


def _work() -> float:
    """Return the processor time of work as an interpreter's: calls, small objects and texts."""
    began = thread_time()
    kept: dict[str, list[str]] = {}
    for number in range(10_000):
        kept.setdefault(str(number % 100), []).append(f"{number:05}".strip("0"))
    sorted(map(len, kept.values()))
    return thread_time() - began
