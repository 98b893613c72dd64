"""The rate at which not-ready nodes of a zone get NoExecute taints.

It is lower if so many nodes are not ready that the cause may be this manager's network. Only `Zone` has state.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum

from msgspec import Struct, field

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, LABEL_REGION, LABEL_ZONE

_EXCLUDED_LABEL = "node.kubernetes.io/exclude-disruption"
"""The label of nodes that are not counted."""
_MIN_NOT_READY = 2
"""A zone with no more not-ready nodes than this is not disrupted, however small it is."""


class ZoneState(Enum):
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


class EvictionLimits(Struct, frozen=True, kw_only=True):
    rate: float
    """The number of nodes per second that get a NoExecute taint."""
    slow_rate: float
    """The rate in a large zone that is partially disrupted; in a small one it is 0."""
    threshold: float
    large: int


class Zone(Struct):
    """The rate limiter of a zone: the time when the next node may get a NoExecute taint."""

    next_at: datetime | None = field(default=None)

    def try_accept(self, now: datetime, rate: float) -> bool:
        if rate == 0 or (self.next_at is not None and now < self.next_at):
            return False
        self.next_at = now + timedelta(seconds=1 / rate)
        return True


def zone_of(node: ReadOnlyTree) -> str:
    labels = meta.labels(node)
    return f"{labels.get(LABEL_REGION, '')}:{labels.get(LABEL_ZONE, '')}"


def label_of(zone: str) -> str:
    """Return upstream's label of a zone in metrics, which is empty for nodes without region and zone."""
    region, _, name = zone.partition(":")
    return f"{region}:\x00:{name}" if region or name else ""


def by_zone(nodes: Sequence[ReadOnlyTree]) -> Mapping[str, Sequence[ReadOnlyTree]]:
    """Return the nodes by zone, without excluded nodes."""
    zones: dict[str, list[ReadOnlyTree]] = {}
    for node in nodes:
        if _EXCLUDED_LABEL not in meta.labels(node):
            zones.setdefault(zone_of(node), []).append(node)
    return zones


def count_not_ready(nodes: Iterable[ReadOnlyTree]) -> int:
    """Return how many nodes are not ready."""
    return sum(not conditions.is_true(node, CONDITION_READY) for node in nodes)


def state_of(nodes: Sequence[ReadOnlyTree], limits: EvictionLimits) -> ZoneState:
    unhealthy = count_not_ready(nodes)
    if unhealthy == len(nodes) > 0:
        return ZoneState.FULL
    if unhealthy > _MIN_NOT_READY and unhealthy / len(nodes) >= limits.threshold:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def rate_of(state: ZoneState, size: int, limits: EvictionLimits) -> float:
    if state is not ZoneState.PARTIAL:
        return limits.rate
    return limits.slow_rate if size > limits.large else 0.0
