"""The pod garbage collector: every twenty seconds it marks garbage pods as failed, and deletes them without grace.

Garbage pods are terminated pods beyond a threshold, pods of deleted or out-of-service nodes, and terminating pods
that were never bound.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, TAINT_OUT_OF_SERVICE
from mockube.controller_manager.client.kinds import NODES, PODS
from mockube.controller_manager.client.podview import FAILED, PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.workloads.disruption import disruption_status

LOG = logging.getLogger(__name__)

PERIOD: Final = 20.0
QUARANTINE: Final = timedelta(seconds=40)
"""The time for which a node is absent from the cache before it is read from the server."""
_ORPHANED: Final = ("DeletionByPodGC", "PodGC: node no longer exists")


class PodGarbageCollector:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._threshold = context.options.controllers.terminated_pod_gc_threshold
        self._nodes, self._pods = context.informers.of(NODES), context.informers.of(PODS)
        self._missing_since: dict[str, datetime] = {}

    async def run(self) -> None:
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        while True:
            try:
                await self._collect()
            except (ApiError, NoResponse) as error:
                LOG.warning("pod garbage collection failed and is retried: %s", error)
            await self._clock.sleep(PERIOD)

    async def _collect(self) -> None:
        pods = self._pods.lister.all()
        nodes = {meta.name(node): node for node in self._nodes.lister.all()}
        absent = await self._absent_nodes(pods, nodes)
        await self._delete(over_threshold(pods, self._threshold))
        await self._delete(pods_on_out_of_service_nodes(pods, nodes))
        await self._delete(orphaned_pods(pods, absent), _ORPHANED)
        await self._delete(unscheduled_terminating_pods(pods))

    async def _absent_nodes(
        self, pods: Iterable[PodView], nodes: Mapping[str, ReadOnlyTree]
    ) -> frozenset[str]:
        """Return the nodes of bound pods that have been missing for the quarantine and that the server does not have."""
        now = self._clock.now()
        missing = {pod.node for pod in pods if pod.node and pod.node not in nodes}
        self._missing_since = {name: self._missing_since.get(name, now) for name in missing}
        overdue = sorted(name for name, since in self._missing_since.items() if since + QUARANTINE <= now)
        return frozenset([name for name in overdue if not await self._exists(name)])

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


def over_threshold(pods: Iterable[PodView], threshold: int) -> Sequence[PodView]:
    """Return the terminated pods beyond the threshold, evicted and old ones first; a threshold of 0 keeps all."""
    ended = sorted((pod for pod in pods if pod.is_terminal), key=_sort_key)
    return ended[: len(ended) - threshold] if 0 < threshold < len(ended) else []


def pods_on_out_of_service_nodes(
    pods: Iterable[PodView], nodes: Mapping[str, ReadOnlyTree]
) -> Sequence[PodView]:
    """Return the terminating pods on nodes that are not ready and have the out-of-service taint."""
    out_of_service = {name for name, node in nodes.items() if _is_out_of_service(node)}
    return sorted((pod for pod in pods if pod.deleting and pod.node in out_of_service), key=_sort_key)


def orphaned_pods(pods: Iterable[PodView], absent: frozenset[str]) -> Iterator[PodView]:
    return (pod for pod in pods if pod.node in absent)


def unscheduled_terminating_pods(pods: Iterable[PodView]) -> Iterator[PodView]:
    """Return the terminating pods without a node: no kubelet deletes them."""
    return (pod for pod in pods if pod.deleting and not pod.node)


def _is_out_of_service(node: ReadOnlyTree) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    has_taint = any(taint["key"] == TAINT_OUT_OF_SERVICE for taint in taints)
    return has_taint and not conditions.is_true(node, CONDITION_READY)


def _sort_key(pod: PodView) -> tuple[bool, datetime, str]:
    was_evicted = (pod.object.get("status") or {}).get("reason") == "Evicted"
    return not was_evicted, meta.creation_timestamp(pod.object) or _MAX_TIME, pod.key.name
