"""Metrics in Prometheus' text format, formatted as Go's client library does.

Families are sorted by name and samples by labels, and a whole number has no fraction.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Protocol

from mockube.apimachinery.gotext import format_g

_BOUNDS: Final = ("le", "quantile")
_TYPES: Final = {"info": "gauge", "stateset": "gauge", "gaugehistogram": "histogram", "unknown": "untyped"}
_SUFFIXES_NOT_IN_GO: Final = ("_created", "_gsum", "_gcount")
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_ESCAPED_HELP: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


class Sample(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def value(self) -> float: ...


class Family(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def documentation(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def samples(self) -> Sequence[Any]: ...


def cumulative_buckets(bounds: Sequence[float], counts: Iterable[int]) -> list[tuple[str, float]]:
    """Return the observations up to each bound of a histogram. `counts` is per bucket; the last bucket has no bound."""
    return [*zip((*map(str, bounds), "+Inf"), map(float, accumulate(counts)), strict=True)]


def metrics_text(families: Iterable[Family]) -> bytes:
    """Format the families that have samples."""
    with_samples = [(_name(family), family) for family in families if family.samples]
    named = sorted(with_samples, key=lambda pair: pair[0])
    return "".join(line for name, family in named for line in _lines(name, family)).encode()


def _name(family: Family) -> str:
    if family.type == "info":
        return f"{family.name}_info"
    is_total = family.type == "counter" and not family.name.endswith("_total")
    # A counter of upstream's without that suffix has samples with the family's own name.
    is_plain = bool(family.samples) and family.samples[0].name == family.name
    return f"{family.name}_total" if is_total and not is_plain else family.name


def _lines(name: str, family: Family) -> Iterator[str]:
    yield f"# HELP {name} {family.documentation.translate(_ESCAPED_HELP)}\n"
    yield f"# TYPE {name} {_TYPES.get(family.type, family.type)}\n"
    metrics: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in family.samples:
        if not sample.name.endswith(_SUFFIXES_NOT_IN_GO) or sample.name == name:
            labels = tuple(sorted(pair for pair in sample.labels.items() if pair[0] not in _BOUNDS))
            metrics.setdefault(labels, []).append(sample)
    for labels in sorted(metrics):
        label_text = ",".join(f'{key}="{value.translate(_ESCAPED)}"' for key, value in labels)
        for sample in sorted(metrics[labels], key=_sort_key):
            yield _line(sample, label_text)


def _sort_key(sample: Sample) -> int:
    """Sort the buckets first, in their order, then the sum, then the count."""
    return sample.name.endswith("_sum") + 2 * sample.name.endswith("_count")


def _line(sample: Sample, labels: str) -> str:
    for bound in _BOUNDS:
        if bound in sample.labels:
            last = f'{bound}="{format_g(float(sample.labels[bound]))}"'
            labels = f"{labels},{last}" if labels else last
    label_text = f"{{{labels}}}" if labels else ""
    return f"{sample.name}{label_text} {format_g(float(sample.value))}\n"
