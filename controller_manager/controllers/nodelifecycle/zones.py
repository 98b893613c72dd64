"""How many nodes of a zone may be given up at a time: fewer where so many are ill that the illness may be ours.

Pure but for the state of a `Zone`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum

from msgspec import Struct, field

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, LABEL_REGION, LABEL_ZONE

_EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label of nodes that are not counted."""
_FEW = 2
"""So many ill nodes disrupt no zone, whatever share of it they are."""


class State(Enum):
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


class Limits(Struct, frozen=True, kw_only=True):
    rate: float
    """Nodes a second."""
    slow_rate: float
    """In a zone that is partly disrupted, if it is large; a small one gives up none then."""
    threshold: float
    large: int


class Zone(Struct):
    """When the next node of the zone may be given up."""

    next_at: datetime | None = field(default=None)

    def take(self, now: datetime, rate: float) -> bool:
        if rate == 0 or (self.next_at is not None and now < self.next_at):
            return False
        self.next_at = now + timedelta(seconds=1 / rate)
        return True


def zone_of(node: ReadOnlyTree) -> str:
    labels = meta.labels(node)
    return f"{labels.get(LABEL_REGION, '')}:{labels.get(LABEL_ZONE, '')}"


def by_zone(nodes: Sequence[ReadOnlyTree]) -> Mapping[str, Sequence[ReadOnlyTree]]:
    """The nodes that count, of each zone."""
    zones: dict[str, list[ReadOnlyTree]] = {}
    for node in nodes:
        if _EXCLUDED not in meta.labels(node):
            zones.setdefault(zone_of(node), []).append(node)
    return zones


def state_of(nodes: Sequence[ReadOnlyTree], limits: Limits) -> State:
    ready = sum(conditions.is_true(node, CONDITION_READY) for node in nodes)
    ill = len(nodes) - ready
    if ready == 0 and ill > 0:
        return State.FULL
    if ill > _FEW and ill / len(nodes) >= limits.threshold:
        return State.PARTIAL
    return State.NORMAL


def rate_of(state: State, size: int, limits: Limits) -> float:
    if state is not State.PARTIAL:
        return limits.rate
    return limits.slow_rate if size > limits.large else 0.0
