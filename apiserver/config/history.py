"""The value of --history: how much of the store's history is kept, by age, number of revisions, memory, or several of them."""

import sys
from argparse import ArgumentTypeError
from typing import Final, TypeVar

from msgspec import Struct

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.quantity import QuantityError, int64_value
from mockube.component_base.flags import seconds
from mockube.etcd.embedded.store import HistoryLimits

DEFAULT_BYTES: Final = 64 << 20
"""The limit of the history that --etcd-compaction-interval keeps: 200,000 changes of Deployments, which take 290 bytes each."""
MIN_BYTES: Final = 1 << 20
_SIZES: Final = ("Ki", "Mi", "Gi", "k", "M", "G")


_Number = TypeVar("_Number", int, float)


class History(Struct, frozen=True, kw_only=True):
    """The limits of history; what exceeds one of them is compacted."""

    seconds: float | None = None
    """None for any age."""
    limits: HistoryLimits


ALL: Final = History(limits=HistoryLimits())


def read_history(text: str) -> History:
    """Read 1h, 100000, 64Mi, several of them with commas, or all."""
    if text == "all":
        return ALL
    age, numbers, sizes = None, sys.maxsize, sys.maxsize
    for word in text.split(","):
        if word.isascii() and word.isdigit():
            numbers = min(numbers, _positive(word, int(word)))
        elif word.endswith(_SIZES):
            sizes = min(sizes, _size(word))
        else:
            age = min(_positive(word, _age(word)), age or sys.maxsize)
    return History(seconds=age, limits=HistoryLimits(bytes=sizes, revisions=numbers))


def limits_of_store(history: History | None) -> HistoryLimits:
    """Return the limits of old versions; None is the default of --history."""
    if history is None:
        return HistoryLimits(bytes=DEFAULT_BYTES)
    return HistoryLimits(
        bytes=history.limits.bytes - journal_bytes(history), revisions=history.limits.revisions
    )


def journal_bytes(history: History) -> int:
    """Return the limit of the authors, a third of the bytes: each takes about half of what an old version takes."""
    return history.limits.bytes // 3


def _age(word: str) -> float:
    try:
        return seconds(word)
    except ArgumentTypeError:
        problem = (
            f"{quote(word)} is no age such as 1h, no number of revisions, no size such as 64Mi, and not all"
        )
        raise ArgumentTypeError(problem) from None


def _size(word: str) -> int:
    try:
        size = int64_value(word, 0)
    except QuantityError as error:
        raise ArgumentTypeError(f"{quote(word)} is no size: {error}") from error
    if size < MIN_BYTES:
        raise ArgumentTypeError(f"{quote(word)} is too small: a history has 1Mi at least")
    return size


def _positive(word: str, value: _Number) -> _Number:
    if value <= 0:
        raise ArgumentTypeError(f"{quote(word)} keeps nothing: more than 0 is needed")
    return value
