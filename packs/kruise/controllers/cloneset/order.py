"""The order in which pods of a CloneSet are deleted and updated, and the actions that scaling and updates decide on."""

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
from mockube.client.podview import RUNNING, PodView
from mockube.controller_manager.control.actions import Action, Patch, SlowStart
from mockube.controller_manager.workloads.deletion_order import deletion_cost


class CloneSetActions(Struct, frozen=True, kw_only=True):
    actions: tuple[Action, ...] = ()
    changes_pods: bool = False
    """Whether pods are written: the next actions are planned when the caches contain them."""
    requeue_after: timedelta | None = None
    problem: str = ""
    """The message about an action that is not possible, without an API error; else empty."""


NOTHING_TO_DO: Final = CloneSetActions()


def earliest(*delays: timedelta | None) -> timedelta | None:
    return min((delay for delay in delays if delay is not None), default=None)


def concurrent_patches(patches: Iterable[Patch]) -> tuple[SlowStart, ...]:
    """Return actions that send the patches of many pods concurrently, patches of the status before all others."""
    ordered = sorted(patches, key=lambda patch: patch.subresource != "status")
    return tuple(
        SlowStart(effects=tuple(group)) for _, group in groupby(ordered, key=lambda patch: patch.subresource)
    )


_PHASE_ORDER: Final[Mapping[str, int]] = {"Unknown": 1, RUNNING: 2}
"""Other phases, such as Pending, come before both."""
_UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Ranks = Mapping[str, float]
"""Ranks of pods by uid; a higher rank comes first, and a pod without a rank last."""
SortKey = tuple[Any, ...]


def for_update(pods: Iterable[PodView]) -> list[PodView]:
    """Return the pods in the order of their updates."""
    return sorted(pods, key=lambda pod: (*_phase_key(pod), pod.is_ready, *_age_key(pod)))


def for_deletion(
    pods: Sequence[PodView], is_available: Callable[[PodView], bool], ranks: Ranks
) -> list[PodView]:
    """Return the pods in the order of their deletion."""

    def key(pod: PodView) -> SortKey:
        return (*_phase_key(pod), is_available(pod), *_cost_key(pod, ranks), *_age_key(pod))

    return sorted(pods, key=key)


def _phase_key(pod: PodView) -> SortKey:
    return bool(pod.node), _PHASE_ORDER.get(pod.phase, 0)


def _cost_key(pod: PodView, ranks: Ranks) -> SortKey:
    return pod.is_ready, deletion_cost(pod.object), -ranks.get(pod.uid, 0.0)


def _age_key(pod: PodView) -> SortKey:
    """Return the sort key by which the pod that became ready last, restarted most, or is youngest comes first."""
    statuses = (pod.object.get("status") or {}).get("containerStatuses") or ()
    restarts = max((status.get("restartCount") or 0 for status in statuses), default=0)
    created = meta.creation_timestamp(pod.object)
    return -_seconds(pod.ready_since), -restarts, -_seconds(created), pod.key.name


def _seconds(time: datetime | None) -> float:
    """Return a time as a number; an absent one is later than all others."""
    return math.inf if time is None or time == _UNIX_EPOCH else time.timestamp()


# --- ranks: pods that share a topology domain come first


def ranks_by_node(pods: Iterable[PodView]) -> dict[str, float]:
    """Rank the pods of each node, except the best one of the node."""
    nodes: dict[str, list[PodView]] = defaultdict(list)
    for pod in pods:
        if pod.node:
            nodes[pod.node].append(pod)
    return {
        pod.uid: float(len(group) - 1 - index)
        for group in nodes.values()
        for index, pod in enumerate(_worst_first(group, {})[:-1])
    }


def ranks_by_topology(
    pods: Sequence[PodView], keys: Iterable[str], node_labels: Callable[[str], ReadOnlyTree]
) -> dict[str, float]:
    """Rank pods by the number of pods in their domain of each topology. A topology with more domains weighs more."""
    node_ranks = ranks_by_node(pods)
    ranks: dict[str, float] = defaultdict(float)
    for key in keys:
        domains: dict[str, list[PodView]] = defaultdict(list)
        for pod in pods:
            if pod.node and (domain := node_labels(pod.node).get(key)) is not None:
                domains[domain].append(pod)
        weight = math.log(len(domains) + 2)
        for group in domains.values():
            ordered = _worst_first(group, {} if key == LABEL_HOSTNAME else node_ranks)
            for index, pod in enumerate(ordered):
                ranks[pod.uid] += (len(group) - index) * weight
    return ranks


def _worst_first(pods: Iterable[PodView], ranks: Ranks) -> list[PodView]:
    return sorted(pods, key=lambda pod: (*_phase_key(pod), *_cost_key(pod, ranks), *_age_key(pod)))
