"""The order in which a ReplicaSet or a Job deletes surplus pods.

Pure. The criteria and their order are those of upstream's `ActivePodsWithRanks`. Ages are compared by powers of two, so
that among pods of about the same age not always the youngest one is deleted.
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
"""Pending pods come before both."""

_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COST = re.compile(r"-?[0-9]+")


class _Urgency(NamedTuple):
    """The criteria before any time; the lesser is deleted first."""

    is_assigned: bool
    phase: int
    is_ready: bool
    deletion_cost: int
    company: int
    """The number of related pods on its node, negated: doubled up pods are deleted first."""


class _RankedPod(Struct, frozen=True, kw_only=True):
    pod: PodView
    urgency: _Urgency
    ready_age: int
    restarts: tuple[int, int]
    created: datetime
    created_age: int


def pods_to_delete_first(
    pods: Sequence[PodView], count: int, related: Iterable[PodView], now: datetime
) -> list[PodView]:
    """So many of the pods. `related` are the pods that share the work, these among them."""
    if count >= len(pods):
        return list(pods)
    crowd = Counter(pod.node for pod in related if pod.is_active)
    ranked_pods = [_rank_of(pod, crowd[pod.node], now) for pod in pods]
    return [ranked.pod for ranked in sorted(ranked_pods, key=cmp_to_key(_compare))[:count]]


def _rank_of(pod: PodView, company: int, now: datetime) -> _RankedPod:
    created = meta.creation_timestamp(pod.object) or _NEVER
    return _RankedPod(
        pod=pod,
        urgency=_Urgency(
            is_assigned=bool(pod.node),
            phase=_PHASES.get(pod.phase, 0),
            is_ready=pod.is_ready,
            deletion_cost=deletion_cost(pod.object),
            company=-company,
        ),
        ready_age=_age_key(pod.ready_since or _NEVER, now),
        restarts=_restarts(pod.object),
        created=created,
        created_age=_age_key(created, now),
    )


def _compare(ranked_pod: _RankedPod, other: _RankedPod) -> int:
    """Compare by age and uid where a time differs; only equal times leave the decision to the next criterion."""
    if ranked_pod.urgency != other.urgency:
        return _compare_keys(ranked_pod.urgency, other.urgency)
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
    """The logarithm of the nanoseconds; what has no time counts as the youngest."""
    if since == _NEVER:
        return -2
    nanoseconds = (now - since) // timedelta(microseconds=1) * 1000
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def deletion_cost(pod: ReadOnlyTree) -> int:
    """The annotation's value; one that is no number of 32 bits is ignored."""
    text = meta.annotations(pod).get(ANNOTATION_POD_DELETION_COST, "")
    if not _COST.fullmatch(text) or (text.startswith("0") and text != "0"):
        return 0
    return int_or_none(text, bits=32) or 0


def _restarts(pod: ReadOnlyTree) -> tuple[int, int]:
    """The most restarts of a container, and of a sidecar."""
    status = pod.get("status") or {}
    inits = (pod.get("spec") or {}).get("initContainers") or ()
    sidecars = {container["name"] for container in inits if container.get("restartPolicy") == "Always"}
    regular = status.get("containerStatuses") or ()
    beside = [
        container_status
        for container_status in status.get("initContainerStatuses") or ()
        if container_status["name"] in sidecars
    ]
    return _most_restarts(regular), _most_restarts(beside)


def _most_restarts(statuses: Iterable[ReadOnlyTree]) -> int:
    return max((status.get("restartCount") or 0 for status in statuses), default=0)
