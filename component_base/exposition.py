"""Metrics in Prometheus' text format, formatted as Go's client library does.

Families are sorted by name and samples by labels, and a whole number has no fraction.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

from mockube.apimachinery.gotext import format_g

from .metrics import Buckets, Collected, Family, Samples

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_EXACT: Final = 1e6
"""Whole numbers below this one are written without an exponent."""


def metrics_text(collected: Iterable[Collected]) -> bytes:
    """Format the families that have samples."""
    families = sorted((each for each in collected if each.samples), key=lambda each: each.family.name)
    return "".join(line for each in families for line in _lines(*each)).encode()


def cumulative(counts: Sequence[int]) -> Sequence[int]:
    """Return the number of observations up to the bound of each bucket."""
    return [*accumulate(counts)]


def sorted_labels(family: Family, samples: Samples) -> list[tuple[list[tuple[str, str]], float | Buckets]]:
    """Return samples in the order of their labels, whose names are sorted."""
    order = sorted(range(len(family.labels)), key=family.labels.__getitem__)
    found = [([(family.labels[at], values[at]) for at in order], value) for values, value in samples]
    return sorted(found, key=lambda sample: sample[0])


def _lines(family: Family, samples: Samples) -> Iterator[str]:
    name = family.name
    yield f"# HELP {name} {_escape(family.help)}\n# TYPE {name} {family.type}\n"
    bounds = _bounds(family.buckets)
    for labels, value in sorted_labels(family, samples):
        text = ",".join([f'{label}="{_escape_quoted(each)}"' for label, each in labels])
        if not isinstance(value, Buckets):
            yield f"{name}{{{text}}} {_number(value)}\n" if text else f"{name} {_number(value)}\n"
            continue
        before = f"{name}_bucket{{{text}," if text else f"{name}_bucket{{"
        counts = cumulative(value.counts)
        for bound, count in zip(bounds, counts, strict=True):
            yield f'{before}le="{bound}"}} {_number(count)}\n'
        after = f"{{{text}}}" if text else ""
        yield f"{name}_sum{after} {_number(value.total)}\n{name}_count{after} {_number(counts[-1])}\n"


@lru_cache
def _bounds(buckets: Sequence[float]) -> Sequence[str]:
    return [*map(format_g, buckets), "+Inf"]


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_quoted(text: str) -> str:
    return _escape(text).replace('"', r"\"")


def _number(value: float) -> str:
    if isinstance(value, int) and -_EXACT < value < _EXACT:
        return str(value + 0)  # True is 1
    return format_g(float(value))
