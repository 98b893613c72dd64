"""Take pods that wait, one after the other; decide on what is known; tell the server.

Deciding is immediate and for one pod at a time, so that two never get the same room. Binding takes a while, so that it
goes on beside: its pod is taken to be on its node from the decision on.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from apimachinery import meta
from apimachinery.chance import fraction
from apimachinery.status import ApiError, Conflict, NotFound
from controller_manager.kinds import NAMESPACES, NODES, PODS
from controller_manager.runtime.caches import Change
from controller_manager.runtime.engine import Context, Engine
from controller_manager.runtime.resource import Key
from controller_manager.runtime.wire import NoAnswer
from controller_manager.simulation.scheduler.choice import Found, best_of, explained, find_able
from controller_manager.simulation.scheduler.cluster import Cluster
from controller_manager.simulation.scheduler.gates import (
    SCHEDULER,
    takes_room,
    unschedulable_patch,
    waits_for_node,
)
from controller_manager.simulation.scheduler.nodeinfo import NodeInfo
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.queue import SchedulingQueue
from controller_manager.simulation.scheduler.world import World
from controller_manager.workloads.podview import PodView

LOG: Final = logging.getLogger(__name__)
_BINDINGS: Final = 32
"""How many are under way at most; deciding waits for the oldest then."""


class Scheduler:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._chance = context.chance
        self._events = context.recorder.series_of(SCHEDULER, SCHEDULER)
        self._pods = context.informers.of(PODS)
        self._nodes = context.informers.of(NODES)
        self._namespaces = context.informers.of(NAMESPACES)
        self._cluster = Cluster()
        self._queue = SchedulingQueue(context.clock)
        self._assumed: set[str] = set()
        self._room = asyncio.Semaphore(_BINDINGS)
        self._nodes.add_handler(self._node_changed)
        self._pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        for informer in (self._namespaces, self._nodes, self._pods):
            await informer.wait_synced()
        async with asyncio.TaskGroup() as group:
            while True:
                await self._room.acquire()
                key = await self._queue.take()
                try:
                    await self._schedule(key, group)
                finally:
                    self._queue.done()

    # --- what the caches tell

    def _node_changed(self, change: Change) -> None:
        if change.new is None:
            self._cluster.remove_node(change.latest["metadata"]["name"])
        else:
            self._cluster.set_node(change.new)
        self._queue.move_all()

    def _pod_changed(self, change: Change) -> None:
        old, new = change
        if old is not None and (new is None or new.uid != old.uid):
            self._gone(old)
        if new is not None:
            self._came(new)

    def _came(self, pod: PodView) -> None:
        if takes_room(pod):
            self._assumed.discard(pod.uid)
            self._cluster.place(PodInfo.of(pod), pod.node)
            self._queue.drop(pod.key)
        elif pod.node or not waits_for_node(pod):
            self._gone(pod)
        elif pod.uid not in self._assumed:
            self._queue.put(pod.key, pod.object["spec"].get("priority") or 0)

    def _gone(self, pod: PodView) -> None:
        self._queue.drop(pod.key)
        self._assumed.discard(pod.uid)
        if self._cluster.is_placed(pod.uid):
            self._cluster.remove_pod(pod.uid)
            self._queue.move_all()

    # --- deciding

    async def _schedule(self, key: Key, group: asyncio.TaskGroup) -> None:
        """Gives the place among the bindings back, now or when the binding is done."""
        view = self._pods.lister.get(*key)
        if view is None or not waits_for_node(view):
            self._queue.drop(key)
            self._room.release()
            return
        pod = PodInfo.of(view)
        world = World(nodes=self._cluster.nodes(), labels_of_namespace=self._labels_of_namespace)
        found = find_able(pod, world)
        if found.able:
            node = self._pick(best_of(pod, world, found.able))
            self._assumed.add(view.uid)
            self._cluster.place(pod, node.name)
            self._queue.drop(key)
            group.create_task(self._bind(pod, node.name), name=f"scheduler/bind {key}")
            return
        try:
            await self._refuse(pod, found, len(world.nodes))
        finally:
            self._queue.stick(key)
            self._room.release()

    def _labels_of_namespace(self, name: str) -> Mapping[str, str]:
        namespace = self._namespaces.lister.get("", name)
        return meta.labels(namespace) if namespace else {}

    def _pick(self, best: list[NodeInfo]) -> NodeInfo:
        return best[int(fraction(self._chance) * len(best))]

    async def _refuse(self, pod: PodInfo, found: Found, nodes: int) -> None:
        message = explained(found.refusals.values(), nodes)
        self._events.say(pod.view.object, "Warning", "FailedScheduling", message, action="Scheduling")
        patch = unschedulable_patch(pod.view.object, message, self._clock.now(), nominee="")
        if patch is None:
            return
        try:
            await self._client.patch(PODS, pod.view.key, patch, subresource="status")
        except (NotFound, Conflict):
            return  # It is gone: the cache will say so.
        except (ApiError, NoAnswer) as error:
            LOG.warning("scheduler: %s: the status was not written: %s", pod.view.key, error)

    # --- binding

    async def _bind(self, pod: PodInfo, node: str) -> None:
        key = pod.view.key
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.view.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._client.create(PODS, body, key=key, subresource="binding")
        except (ApiError, NoAnswer) as error:
            self._unbound(pod, error)
        else:
            text = f"Successfully assigned {key} to {node}"
            self._events.say(pod.view.object, "Normal", "Scheduled", text, action="Binding")
        finally:
            self._room.release()

    def _unbound(self, pod: PodInfo, error: Exception) -> None:
        """It may have been bound even so: what the caches say next counts."""
        if pod.view.uid not in self._assumed:
            return
        LOG.info("scheduler: %s: binding failed: %s", pod.view.key, error)
        self._assumed.discard(pod.view.uid)
        self._cluster.remove_pod(pod.view.uid)
        latest = self._pods.lister.get(*pod.view.key)
        if latest is not None and latest.uid == pod.view.uid:
            self._came(latest)
        self._queue.move_all()


def scheduler() -> Engine:
    return Engine(name="kube-scheduler", service_account="kube-scheduler", build=Scheduler)
