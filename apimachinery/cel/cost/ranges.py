"""Ranges of sizes and costs, with saturating arithmetic of 64 bits."""

import math
from typing import Final, NamedTuple

MAX_UINT64: Final = (1 << 64) - 1


def cap(number: int) -> int:
    return min(number, MAX_UINT64)


def scale(number: int, factor: float) -> int:
    """Return a number times a factor, rounded up."""
    product = float(number) * factor
    return MAX_UINT64 if product >= 2.0**64 else math.ceil(product)


class EstimateRange(NamedTuple):
    """The minimum and maximum of a size or a cost."""

    low: int
    high: int

    def plus(self, other: "EstimateRange") -> "EstimateRange":
        return EstimateRange(cap(self.low + other.low), cap(self.high + other.high))

    def times(self, other: "EstimateRange") -> "EstimateRange":
        return EstimateRange(cap(self.low * other.low), cap(self.high * other.high))

    def scale_by(self, factor: float) -> "EstimateRange":
        return EstimateRange(scale(self.low, factor), scale(self.high, factor))

    def union(self, other: "EstimateRange") -> "EstimateRange":
        return EstimateRange(min(self.low, other.low), max(self.high, other.high))


def exact_range(number: int) -> EstimateRange:
    return EstimateRange(number, number)


UNKNOWN: Final = EstimateRange(0, MAX_UINT64)
ZERO: Final = exact_range(0)
ONE: Final = exact_range(1)
STRING_FACTOR: Final = 0.1
"""The cost of traversing a character."""
REGEX_FACTOR: Final = 0.25
"""The cost of a character of a regular expression."""
LIST_BASE: Final = 10
MAP_BASE: Final = 30
STRUCT_BASE: Final = 40
AUTHORIZATION_CHECK: Final = 350_000
SIMPLE_FUNCTIONS: Final = [
    "serviceAccount",
    "path",
    "group",
    "resource",
    "subresource",
    "namespace",
    "name",
    "allowed",
    "reason",
    "error",
    "errored",
    "masked",
    "prefixLength",
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "format.named",
    "sign",
    "asInteger",
    "isInteger",
    "asApproximateFloat",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "add",
    "sub",
    "major",
    "minor",
    "patch",
    "getScheme",
    "getHostname",
    "getHost",
    "getPort",
    "getEscapedPath",
    "getQuery",
]
"""Functions with a cost of 1."""
