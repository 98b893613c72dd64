"""The pod garbage collector: every twenty seconds it marks garbage pods as failed, and deletes them without grace.

Garbage pods are terminated pods beyond a threshold, pods of deleted or out-of-service nodes, and terminating pods
that were never bound.
"""

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, TAINT_OUT_OF_SERVICE
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.disruption import OF_DELETED_NODE, disruption_status
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.kinds import NODES, PODS
from mockube.client.podview import FAILED, PodView
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context, Runnable

LOG = logging.getLogger(__name__)

PERIOD: Final = 20.0
QUARANTINE: Final = timedelta(seconds=40)
"""The time for which a node is absent from the cache before it is read from the server."""

_BY_STATE: Final = "garbage"
_ENDED, _UNSCHEDULED_TERMINATING = "ended", "unscheduled-terminating"


def _states_of_pod(pod: PodView) -> Iterable[str]:
    if pod.is_terminal:
        yield _ENDED
    if pod.deleting and not pod.node:
        yield _UNSCHEDULED_TERMINATING


INDEXES: Final[Mapping[str, Callable[[PodView], Iterable[str]]]] = {
    BY_NODE: node_of_pod,
    _BY_STATE: _states_of_pod,
}
"""The indexes of pods: a collection costs nothing for pods that run."""


class PodGarbageCollector:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._threshold = context.options.controllers.terminated_pod_gc_threshold
        self._nodes, self._pods = context.informers.of(NODES), context.informers.of(PODS)
        for name, function in INDEXES.items():
            self._pods.add_index(name, function)
        self._missing_since: dict[str, datetime] = {}

    async def run(self) -> None:
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        while True:
            try:
                await self._collect()
            except (ApiError, NoResponse) as error:
                LOG.warning("pod garbage collection failed and is retried: %s", error)
            clock = self._clock if self._missing_since else self._clock.routine
            await clock.sleep(PERIOD)

    async def _collect(self) -> None:
        pods, nodes = self._pods.lister, self._nodes.lister.all()
        absent = await self._absent_nodes({meta.name(node) for node in nodes})
        await self._delete(over_threshold(pods, self._threshold))
        await self._delete(pods_on_out_of_service_nodes(pods, nodes))
        await self._delete(pods_on(absent, pods), OF_DELETED_NODE)
        await self._delete(unscheduled_terminating_pods(pods))

    async def _absent_nodes(self, nodes: Container[str]) -> Sequence[str]:
        """Return the nodes of bound pods that have been missing for the quarantine and that the server does not have."""
        now = self._clock.now()
        missing = [name for name in self._pods.lister.index_counts(BY_NODE) if name not in nodes]
        self._missing_since = {name: self._missing_since.get(name, now) for name in missing}
        overdue = sorted(name for name, since in self._missing_since.items() if since + QUARANTINE <= now)
        return [name for name in overdue if not await self._exists(name)]

    async def _exists(self, name: str) -> bool:
        try:
            await self._client.get(NODES, Key("", name))
        except NotFound:
            return False
        return True

    async def _delete(self, pods: Iterable[PodView], disruption: tuple[str, str] | None = None) -> None:
        for pod in pods:
            try:
                if not pod.is_terminal:
                    await self._mark_failed(pod, disruption)
                await self._client.delete(PODS, pod.key, uid=pod.uid, grace_period_seconds=0)
            except NotFound:
                continue

    async def _mark_failed(self, pod: PodView, disruption: tuple[str, str] | None) -> None:
        """Set the phase Failed: no kubelet will write a final phase, for which owners wait."""
        generation = meta.generation(pod.object)
        status: dict[str, object] = {"phase": FAILED, "observedGeneration": generation}
        if disruption is not None:
            status |= disruption_status(pod.object, *disruption, self._clock.now(), generation)
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._client.patch(PODS, pod.key, body, kind="strategic", subresource="status")


POD_GARBAGE_COLLECTOR: Final = Runnable(
    name="pod-garbage-collector-controller",
    service_account="pod-garbage-collector",
    build=PodGarbageCollector,
)


_MAX_TIME: Final = datetime.max.replace(tzinfo=UTC)


def over_threshold(pods: Lister[PodView], threshold: int) -> Sequence[PodView]:
    """Return the terminated pods beyond the threshold, evicted and old ones first; a threshold of 0 keeps all."""
    ended = pods.by_index(_BY_STATE, _ENDED)
    return sorted(ended, key=_sort_key)[: len(ended) - threshold] if 0 < threshold < len(ended) else []


def pods_on_out_of_service_nodes(pods: Lister[PodView], nodes: Iterable[ReadOnlyTree]) -> Sequence[PodView]:
    """Return the terminating pods on nodes that are not ready and have the out-of-service taint."""
    out_of_service = (meta.name(node) for node in nodes if _is_out_of_service(node))
    return sorted((pod for pod in pods_on(out_of_service, pods) if pod.deleting), key=_sort_key)


def pods_on(nodes: Iterable[str], pods: Lister[PodView]) -> Iterator[PodView]:
    return (pod for node in nodes for pod in pods.by_index(BY_NODE, node))


def unscheduled_terminating_pods(pods: Lister[PodView]) -> Sequence[PodView]:
    """Return the terminating pods without a node: no kubelet deletes them."""
    return pods.by_index(_BY_STATE, _UNSCHEDULED_TERMINATING)


def _is_out_of_service(node: ReadOnlyTree) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    has_taint = any(taint["key"] == TAINT_OUT_OF_SERVICE for taint in taints)
    return has_taint and not conditions.is_true(node, CONDITION_READY)


def _sort_key(pod: PodView) -> tuple[bool, datetime, str]:
    was_evicted = (pod.object.get("status") or {}).get("reason") == "Evicted"
    return not was_evicted, meta.creation_timestamp(pod.object) or _MAX_TIME, pod.key.name
