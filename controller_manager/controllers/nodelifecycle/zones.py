"""The rate at which not-ready nodes of a zone get NoExecute taints.

It is lower if so many nodes are not ready that the cause may be this manager's network.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, LABEL_REGION, LABEL_ZONE
from mockube.client.cache.store import ALL, Lister

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


class ZoneSize(Struct):
    """The number of nodes of a zone, and how many of them are not ready."""

    nodes: int = 0
    not_ready: int = 0


BY_ZONE: Final = "zone"
"""The tally of nodes by zone and readiness."""


def zone_and_readiness(node: ReadOnlyTree) -> tuple[str, tuple[str, bool]] | None:
    """Return the zone of a node, and whether it is ready, for the tally; None for an excluded node."""
    if _EXCLUDED_LABEL in meta.labels(node):
        return None
    return ALL, (zone_of(node), conditions.is_true(node, CONDITION_READY))


def sizes_of(nodes: Lister[ReadOnlyTree]) -> Mapping[str, ZoneSize]:
    """Return the sizes of the zones with nodes."""
    sizes: dict[str, ZoneSize] = {}
    for (zone, is_ready), count in nodes.class_counts(BY_ZONE, ALL).items():
        size = sizes.setdefault(zone, ZoneSize())
        size.nodes += count
        size.not_ready += 0 if is_ready else count
    return sizes


def state_of(size: ZoneSize, limits: EvictionLimits) -> ZoneState:
    if size.not_ready == size.nodes > 0:
        return ZoneState.FULL
    if size.not_ready > _MIN_NOT_READY and size.not_ready / size.nodes >= limits.threshold:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def rate_of(state: ZoneState, size: int, limits: EvictionLimits) -> float:
    if state is not ZoneState.PARTIAL:
        return limits.rate
    return limits.slow_rate if size > limits.large else 0.0
