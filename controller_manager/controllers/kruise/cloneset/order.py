"""The order in which pods of a CloneSet are deleted and updated: the least useful first."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.controller_manager.client.podview import RUNNING, PodView
from mockube.controller_manager.control.actions import Action, Patch, SlowStart
from mockube.controller_manager.workloads.deletion_order import deletion_cost


class Decision(Struct, frozen=True, kw_only=True):
    actions: tuple[Action, ...] = ()
    changes_pods: bool = False
    """Something is written: the next actions are planned after the caches show it."""
    again_after: timedelta | None = None
    problem: str = ""
    """Why not every action was possible, if there is no API error."""


NOTHING_TO_DO: Final = Decision()


def earliest(*delays: timedelta | None) -> timedelta | None:
    return min((delay for delay in delays if delay is not None), default=None)


def concurrent_patches(patches: Iterable[Patch]) -> tuple[SlowStart, ...]:
    """The patches of many pods, concurrently; each pod's status patches precede its other ones."""
    ordered = sorted(patches, key=lambda patch: patch.subresource != "status")
    return tuple(
        SlowStart(effects=tuple(group)) for _, group in groupby(ordered, key=lambda patch: patch.subresource)
    )


_PHASES: Final[Mapping[str, int]] = {"Unknown": 1, RUNNING: 2}
"""Pending pods come before both."""
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)

Ranks = Mapping[str, float]
"""By a pod's uid; the higher is first, and a pod without one is last."""
SortKey = tuple[Any, ...]


def for_update(pods: Iterable[PodView]) -> list[PodView]:
    return sorted(pods, key=lambda pod: (*_stage(pod), pod.is_ready, *_age_key(pod)))


def for_deletion(
    pods: Sequence[PodView], is_available: Callable[[PodView], bool], ranks: Ranks
) -> list[PodView]:
    def key(pod: PodView) -> SortKey:
        return (*_stage(pod), is_available(pod), *_cost(pod, ranks), *_age_key(pod))

    return sorted(pods, key=key)


def _stage(pod: PodView) -> SortKey:
    return bool(pod.node), _PHASES.get(pod.phase, 0)


def _cost(pod: PodView, ranks: Ranks) -> SortKey:
    return pod.is_ready, deletion_cost(pod.object), -ranks.get(pod.uid, 0.0)


def _age_key(pod: PodView) -> SortKey:
    """The last ready, the most restarted, and the youngest pod first."""
    statuses = (pod.object.get("status") or {}).get("containerStatuses") or ()
    restarts = max((status.get("restartCount") or 0 for status in statuses), default=0)
    created = meta.creation_timestamp(pod.object)
    return -_seconds(pod.ready_since), -restarts, -_seconds(created), pod.key.name


def _seconds(time: datetime | None) -> float:
    """What has no time is younger than all that has one."""
    return math.inf if time is None or time == _NEVER else time.timestamp()


# --- ranks: pods that share their topology are first


def by_node(pods: Iterable[PodView]) -> dict[str, float]:
    """Of the pods on one node all but the best have a rank."""
    nodes: dict[str, list[PodView]] = defaultdict(list)
    for pod in pods:
        if pod.node:
            nodes[pod.node].append(pod)
    return {
        pod.uid: float(len(group) - 1 - index)
        for group in nodes.values()
        for index, pod in enumerate(_worst_first(group, {})[:-1])
    }


def by_topology(
    pods: Sequence[PodView], keys: Iterable[str], node_labels: Callable[[str], ReadOnlyTree]
) -> dict[str, float]:
    """By how many pods share a domain of each topology; a topology with more domains weighs more."""
    company = by_node(pods)
    ranks: dict[str, float] = defaultdict(float)
    for key in keys:
        domains: dict[str, list[PodView]] = defaultdict(list)
        for pod in pods:
            if pod.node and (domain := node_labels(pod.node).get(key)) is not None:
                domains[domain].append(pod)
        weight = math.log(len(domains) + 2)
        for group in domains.values():
            ordered = _worst_first(group, {} if key == LABEL_HOSTNAME else company)
            for index, pod in enumerate(ordered):
                ranks[pod.uid] += (len(group) - index) * weight
    return ranks


def _worst_first(pods: Iterable[PodView], ranks: Ranks) -> list[PodView]:
    return sorted(pods, key=lambda pod: (*_stage(pod), *_cost(pod, ranks), *_age_key(pod)))
