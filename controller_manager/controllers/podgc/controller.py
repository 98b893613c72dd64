"""Collect garbage pods every twenty seconds: mark them as failed, and delete them without grace.

Garbage are terminated pods beyond a threshold, pods of deleted or out-of-service nodes, and terminating pods
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
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.workloads.disruption import disruption_status

LOG = logging.getLogger(__name__)

PERIOD: Final = 20.0
QUARANTINE: Final = timedelta(seconds=40)
"""How long a node is absent from the cache before it is read from the server."""
_ORPHANED: Final = ("DeletionByPodGC", "PodGC: node no longer exists")


class PodGarbageCollector:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._threshold = context.options.controllers.terminated_pod_gc_threshold
        self._nodes, self._pods = context.informers.of(NODES), context.informers.of(PODS)
        self._missed: dict[str, datetime] = {}

    async def run(self) -> None:
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        while True:
            try:
                await self._collect()
            except (ApiError, NoAnswer) as error:
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
        """Return nodes of bound pods that were missing for long enough and that the server does not have."""
        now = self._clock.now()
        missed = {pod.node for pod in pods if pod.node and pod.node not in nodes}
        self._missed = {name: self._missed.get(name, now) for name in missed}
        overdue = sorted(name for name, since in self._missed.items() if since + QUARANTINE <= now)
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
        """No kubelet will write its end, and owners wait for one."""
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


_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def over_threshold(pods: Iterable[PodView], threshold: int) -> Sequence[PodView]:
    """The evicted and then the oldest of those that have ended, so that as many are left as may be; 0 keeps all."""
    ended = sorted((pod for pod in pods if pod.is_terminal), key=_sort_key)
    return ended[: len(ended) - threshold] if 0 < threshold < len(ended) else []


def pods_on_out_of_service_nodes(
    pods: Iterable[PodView], nodes: Mapping[str, ReadOnlyTree]
) -> Sequence[PodView]:
    """Those that are to go, on nodes that are not ready and were put out of service by hand."""
    given_up = {name for name, node in nodes.items() if _is_given_up(node)}
    return sorted((pod for pod in pods if pod.deleting and pod.node in given_up), key=_sort_key)


def orphaned_pods(pods: Iterable[PodView], absent: frozenset[str]) -> Iterator[PodView]:
    return (pod for pod in pods if pod.node in absent)


def unscheduled_terminating_pods(pods: Iterable[PodView]) -> Iterator[PodView]:
    """Return pods that are being deleted and that no kubelet will remove."""
    return (pod for pod in pods if pod.deleting and not pod.node)


def _is_given_up(node: ReadOnlyTree) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    is_out = any(taint["key"] == TAINT_OUT_OF_SERVICE for taint in taints)
    return is_out and not conditions.is_true(node, CONDITION_READY)


def _sort_key(pod: PodView) -> tuple[bool, datetime, str]:
    was_evicted = (pod.object.get("status") or {}).get("reason") == "Evicted"
    return not was_evicted, meta.creation_timestamp(pod.object) or _NEVER, pod.key.name
