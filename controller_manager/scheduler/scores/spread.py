"""Nodes that leave the spread more even. Upstream: plugins/podtopologyspread, scoring.

A pod without constraints is spread over hosts and zones with the other pods of its controller.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.wellknown import LABEL_HOSTNAME, LABEL_ZONE
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.scores.score import BEST
from mockube.controller_manager.scheduler.spreading import PREFERRED, Constraint, constraints_of


class _Wish(NamedTuple):
    topology_key: str
    max_skew: int
    counts_in: Callable[[NodeInfo], bool]
    count: Callable[[NodeInfo], int]


_DEFAULTS: Final = ((LABEL_HOSTNAME, 3), (LABEL_ZONE, 5))


def even_spread(pod: PodInfo, world: ClusterSnapshot, able: Sequence[NodeInfo]) -> list[float] | None:
    wishes = _wishes(pod)
    # The default constraints do not require the topology labels.
    is_asked = bool(pod.spec.get("topologySpreadConstraints"))
    rated = [not is_asked or all(wish.topology_key in node.labels for wish in wishes) for node in able]
    if not wishes or not any(rated):
        return None
    raw = [0.0] * len(able)
    for wish in wishes:
        counts = _counts(wish, world)
        weight = math.log(len({node.labels.get(wish.topology_key) for node in able}) + 2)
        for at, node in enumerate(able):
            value = node.labels.get(wish.topology_key)
            if value is not None:
                raw[at] += counts[value] * weight + (wish.max_skew - 1)
    return _normalized(raw, rated)


def _wishes(pod: PodInfo) -> list[_Wish]:
    constraints = constraints_of(pod, PREFERRED)
    if constraints or pod.spec.get("topologySpreadConstraints"):
        return [_constraint_wish(pod, one) for one in constraints]
    owner = pod.view.owner_uid
    if not owner:
        return []
    return [_Wish(key, skew, lambda _: True, lambda node: node.by_owner[owner]) for key, skew in _DEFAULTS]


def _constraint_wish(pod: PodInfo, constraint: Constraint) -> _Wish:
    return _Wish(
        constraint.topology_key,
        constraint.max_skew,
        lambda node: constraint.counts_in(pod, node),
        lambda node: constraint.count(pod, node),
    )


def _counts(wish: _Wish, world: ClusterSnapshot) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in world.nodes:
        value = node.labels.get(wish.topology_key)
        if value is not None and wish.counts_in(node):
            counts[value] += wish.count(node)
    return counts


def _normalized(raw: Sequence[float], rated: Sequence[bool]) -> list[float]:
    known = [round(value) for value, is_rated in zip(raw, rated, strict=True) if is_rated]
    least, most = min(known), max(known)
    return [
        0.0 if not is_rated else BEST if most == 0 else BEST * (most + least - round(value)) / most
        for value, is_rated in zip(raw, rated, strict=True)
    ]
