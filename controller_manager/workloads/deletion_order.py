"""Choose the surplus pods that a ReplicaSet or a Job deletes first.

Pure. The criteria and their order are those of upstream's `ActivePodsWithRanks`. Ages are compared on a logarithmic scale,
so that of pods of about the same age any of them may be deleted, not always the youngest.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cmp_to_key, partial
from heapq import nsmallest
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_POD_DELETION_COST
from mockube.client.podview import RUNNING, PodView

_UNKNOWN: Final = "Unknown"
_PHASES: Final[Mapping[str, int]] = {_UNKNOWN: 1, RUNNING: 2}
"""The rank of each phase; other phases, such as Pending, have 0 and are deleted first."""

_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COST = re.compile(r"-?[0-9]+")


class _Rank(NamedTuple):
    """The criteria that cost little; the pod with the lower ones is deleted first."""

    is_assigned: bool
    phase: int
    is_ready: bool
    deletion_cost: int
    colocated_pods: int
    """The number of related pods on the same node, negated: colocated pods are deleted first."""
    ready_age: int


def pods_to_delete_first(
    pods: Sequence[PodView], count: int, related: Iterable[PodView], now: datetime
) -> list[PodView]:
    """Return `count` of the pods: those to delete first. `related` are all pods that share their work."""
    if count >= len(pods):
        return list(pods)
    pods_by_rank = _by_rank(pods, Counter([pod.node for pod in related if pod.is_active]), now)
    chosen: list[PodView] = []
    for rank in sorted(pods_by_rank):
        # Only few of a large ReplicaSet's pods are chosen by the criteria that cost more.
        chosen += nsmallest(count - len(chosen), pods_by_rank[rank], key=cmp_to_key(partial(_compare, now)))
        if len(chosen) == count:
            break
    return chosen


def _by_rank(
    pods: Sequence[PodView], pods_by_node: Mapping[str, int], now: datetime
) -> Mapping[_Rank, list[PodView]]:
    ready_ages: dict[datetime | None, int] = {}
    pods_by_rank: dict[_Rank, list[PodView]] = {}
    for pod in pods:
        since = pod.ready_since
        ready_age = ready_ages.get(since)
        if ready_age is None:
            ready_age = ready_ages[since] = _age_key(since or _NO_TIME, now)
        rank = _Rank(
            is_assigned=bool(pod.node),
            phase=_PHASES.get(pod.phase, 0),
            is_ready=since is not None,
            deletion_cost=deletion_cost(pod.object),
            colocated_pods=-pods_by_node.get(pod.node, 0),
            ready_age=ready_age,
        )
        pods_by_rank.setdefault(rank, []).append(pod)
    return pods_by_rank


def _compare(now: datetime, pod: PodView, other: PodView) -> int:
    """Compare two pods of one rank. Different times are compared by age, then by uid; equal ones by what follows."""
    if pod.ready_since != other.ready_since:
        return -1 if pod.uid < other.uid else 1  # their ages are equal
    restarts, other_restarts = _restarts(pod.object), _restarts(other.object)
    if restarts != other_restarts:
        return -1 if restarts > other_restarts else 1
    created = meta.creation_timestamp(pod.object) or _NO_TIME
    other_created = meta.creation_timestamp(other.object) or _NO_TIME
    if created != other_created:
        key, other_key = (_age_key(created, now), pod.uid), (_age_key(other_created, now), other.uid)
        return -1 if key < other_key else 1
    return 0


def _age_key(since: datetime, now: datetime) -> int:
    """Return the binary logarithm of the age in nanoseconds; a pod without a time counts as the youngest."""
    if since == _NO_TIME:
        return -2
    nanoseconds = (now - since) // timedelta(microseconds=1) * 1000
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def deletion_cost(pod: ReadOnlyTree) -> int:
    """Return the value of the deletion cost annotation; 0 if it is no integer of 32 bits."""
    text = meta.annotations(pod).get(ANNOTATION_POD_DELETION_COST)
    if text is None:
        return 0
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
