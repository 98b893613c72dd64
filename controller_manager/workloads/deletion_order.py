"""Choose the surplus pods that a ReplicaSet or a Job deletes first.

Pure. The criteria and their order are those of upstream's `ActivePodsWithRanks`. Ages are compared on a logarithmic scale,
so that of pods of about the same age any of them may be deleted, not always the youngest.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_POD_DELETION_COST
from mockube.controller_manager.client.podview import RUNNING, PodView

_UNKNOWN: Final = "Unknown"
_PHASES: Final[Mapping[str, int]] = {_UNKNOWN: 1, RUNNING: 2}
"""The rank of each phase; other phases, such as Pending, have 0 and are deleted first."""

_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COST = re.compile(r"-?[0-9]+")


class _Criteria(NamedTuple):
    """The criteria that precede times; the pod with the lower ones is deleted first."""

    is_assigned: bool
    phase: int
    is_ready: bool
    deletion_cost: int
    colocated_pods: int
    """The number of related pods on the same node, negated: colocated pods are deleted first."""


class _RankedPod(Struct, frozen=True, kw_only=True):
    pod: PodView
    criteria: _Criteria
    ready_age: int
    restarts: tuple[int, int]
    created: datetime
    created_age: int


def pods_to_delete_first(
    pods: Sequence[PodView], count: int, related: Iterable[PodView], now: datetime
) -> list[PodView]:
    """Return `count` of the pods: those to delete first. `related` are all pods that share their work."""
    if count >= len(pods):
        return list(pods)
    pods_by_node = Counter(pod.node for pod in related if pod.is_active)
    ranked_pods = [_ranked_pod(pod, pods_by_node[pod.node], now) for pod in pods]
    return [ranked.pod for ranked in sorted(ranked_pods, key=cmp_to_key(_compare))[:count]]


def _ranked_pod(pod: PodView, colocated_pods: int, now: datetime) -> _RankedPod:
    created = meta.creation_timestamp(pod.object) or _NO_TIME
    return _RankedPod(
        pod=pod,
        criteria=_Criteria(
            is_assigned=bool(pod.node),
            phase=_PHASES.get(pod.phase, 0),
            is_ready=pod.is_ready,
            deletion_cost=deletion_cost(pod.object),
            colocated_pods=-colocated_pods,
        ),
        ready_age=_age_key(pod.ready_since or _NO_TIME, now),
        restarts=_restarts(pod.object),
        created=created,
        created_age=_age_key(created, now),
    )


def _compare(ranked_pod: _RankedPod, other: _RankedPod) -> int:
    """Compare two pods by all criteria. Different times are compared by age, then by uid; equal ones by what follows."""
    if ranked_pod.criteria != other.criteria:
        return _compare_keys(ranked_pod.criteria, other.criteria)
    if ranked_pod.pod.ready_since != other.pod.ready_since:
        return _compare_keys((ranked_pod.ready_age, ranked_pod.pod.uid), (other.ready_age, other.pod.uid))
    if ranked_pod.restarts != other.restarts:
        return _compare_keys(other.restarts, ranked_pod.restarts)
    if ranked_pod.created != other.created:
        return _compare_keys((ranked_pod.created_age, ranked_pod.pod.uid), (other.created_age, other.pod.uid))
    return 0


def _compare_keys(key: tuple[object, ...], other: tuple[object, ...]) -> int:
    return -1 if key < other else 1


def _age_key(since: datetime, now: datetime) -> int:
    """Return the binary logarithm of the age in nanoseconds; a pod without a time counts as the youngest."""
    if since == _NO_TIME:
        return -2
    nanoseconds = (now - since) // timedelta(microseconds=1) * 1000
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def deletion_cost(pod: ReadOnlyTree) -> int:
    """Return the value of the deletion cost annotation; 0 if it is no integer of 32 bits."""
    text = meta.annotations(pod).get(ANNOTATION_POD_DELETION_COST, "")
    if not _COST.fullmatch(text) or (text.startswith("0") and text != "0"):
        return 0
    return int_or_none(text, bits=32) or 0


def _restarts(pod: ReadOnlyTree) -> tuple[int, int]:
    """Return the maximum restart counts of the containers and of the sidecars."""
    status = pod.get("status") or {}
    inits = (pod.get("spec") or {}).get("initContainers") or ()
    sidecars = {container["name"] for container in inits if container.get("restartPolicy") == "Always"}
    container_statuses = status.get("containerStatuses") or ()
    sidecar_statuses = [
        container_status
        for container_status in status.get("initContainerStatuses") or ()
        if container_status["name"] in sidecars
    ]
    return _most_restarts(container_statuses), _most_restarts(sidecar_statuses)


def _most_restarts(statuses: Iterable[ReadOnlyTree]) -> int:
    return max((status.get("restartCount") or 0 for status in statuses), default=0)
