"""Collects pods that are garbage, every twenty seconds: says that they failed, and deletes them without grace."""

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from apimachinery import meta
from apimachinery.status import ApiError, NotFound
from apimachinery.timestamps import format_time
from apimachinery.wellknown import CONDITION_DISRUPTION_TARGET
from controller_manager.engines.podgc import selection
from controller_manager.kinds import NODES, PODS
from controller_manager.runtime.engine import Context, Engine
from controller_manager.runtime.resource import Key, Tree
from controller_manager.runtime.wire import NoAnswer
from controller_manager.workloads.podview import FAILED, PodView

LOG = logging.getLogger(__name__)

PERIOD: Final = 20.0
QUARANTINE: Final = timedelta(seconds=40)
"""How long a node is missed in the cache before the server is asked for it."""
_ORPHANED: Final = {
    "type": CONDITION_DISRUPTION_TARGET,
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


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
                LOG.warning("pods are collected again later: %s", error)
            await self._clock.sleep(PERIOD)

    async def _collect(self) -> None:
        pods = self._pods.lister.all()
        nodes = {meta.name(node): node for node in self._nodes.lister.all()}
        absent = await self._absent_nodes(pods, nodes)
        await self._delete(selection.over_threshold(pods, self._threshold))
        await self._delete(selection.on_given_up_nodes(pods, nodes))
        await self._delete(selection.on_absent_nodes(pods, absent), _ORPHANED)
        await self._delete(selection.never_bound(pods))

    async def _absent_nodes(self, pods: Iterable[PodView], nodes: Mapping[str, Tree]) -> frozenset[str]:
        """Nodes that pods are bound to, that were missed for long enough, and that the server does not know."""
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

    async def _delete(self, pods: Iterable[PodView], condition: Mapping[str, str] | None = None) -> None:
        for pod in pods:
            try:
                if not pod.is_terminal:
                    await self._mark_failed(pod, condition)
                await self._client.delete(PODS, pod.key, uid=pod.uid, grace_period_seconds=0)
            except NotFound:
                continue

    async def _mark_failed(self, pod: PodView, condition: Mapping[str, str] | None) -> None:
        """No kubelet will tell what became of it, and owners wait for an end."""
        status: dict[str, object] = {"phase": FAILED}
        if condition is not None:
            since = format_time(self._clock.now())
            status["conditions"] = [{**condition, "lastTransitionTime": since}]
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._client.patch(PODS, pod.key, body, kind="strategic", subresource="status")


POD_GARBAGE_COLLECTOR: Final = Engine(
    name="pod-garbage-collector-controller",
    service_account="pod-garbage-collector",
    build=PodGarbageCollector,
)
