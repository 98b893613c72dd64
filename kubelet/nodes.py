"""The runnable of simulated nodes: registration, Leases, and the stages of their status."""

import logging
from collections.abc import Container
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.status import Conflict, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Change
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import run_all
from mockube.container_runtime.records import Records

from .addresses import NodeAddresses
from .kubelet_versions import KUBELET_VERSION, is_unsupported, kubelet_version
from .node_events import NodeEvents
from .node_objects import has_active_kubelet, internal_ip, is_simulated, node, stopped_units
from .node_pools.pool import DEFAULT_POOL
from .node_registry import NodeRegistry
from .node_shapes import ShapedNode, recorded_shape, shaped_nodes
from .node_status import Reservations, correction, reservations
from .registration import NodeRegistration
from .resizing import NODES_CONFIG_MAP, DesiredNodes, desired_nodes, node_number
from .settings import KubeletContext
from .stages.files import load_stages, of_kind
from .stages.runner import StageRunner
from .status_writer import StatusWriter
from .step_effects import PatchObject
from .template_context import TemplateContext

LOG: Final = logging.getLogger(__name__)

WORKERS: Final = 8
EVENT_SOURCE: Final = "kwok_controller"
"""The event source of stages; kwok's."""
_RETRY: Final = timedelta(seconds=1)
_ALL_NODES: Final = Key("", "")
"""The key that stands for all nodes: its reconciliation finds the nodes to register and to delete."""


class SimulatedNodes:
    def __init__(self, context: KubeletContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._settings = settings = context.settings
        self._nodes = context.informers.of(kinds.NODES)
        self._config_maps = context.informers.of(kinds.CONFIG_MAPS)
        self._registry = registry = NodeRegistry(
            self._nodes.lister,
            context.informers.of(kinds.PODS).lister,
            details=False,
            waits_for_pod_cidrs=settings.waits_for_pod_cidrs,
        )
        self._registration = NodeRegistration(
            context.client,
            registry,
            clock=context.clock,
            grace_period=settings.grace_period,
            requeue=lambda name: self._leases.add(Key("", name)),
        )
        self._records = Records()
        self._status_writer = StatusWriter(
            self._records, context.client, context.recorder.of(EVENT_SOURCE), kinds.NODES, context.clock
        )
        stages = of_kind("Node", load_stages(settings.stages))
        self._acts_as_kubelet = settings.details and stages == of_kind("Node", load_stages(()))
        """Whether nodes have more of a kubelet than kwok's stages."""
        kubelet = context.recorder.of("kubelet")
        self._events = NodeEvents(kubelet, context.clock) if self._acts_as_kubelet else None
        self._stages = StageRunner(
            self._records,
            stages,
            self._status_writer,
            TemplateContext.of(registry, context.clock, lambda: self._version).node_functions,
            clock=context.clock,
            random=context.random,
        )
        self._leases = self._loop(context, "simulated-leases", self._heartbeat, context.clock.renewals)
        self._statuses = self._loop(
            context,
            "simulated-nodes",
            self._sync,
            # Of kwok's stages only those of the user wait for something else than the next heartbeat.
            context.clock.renewals if self._acts_as_kubelet else context.clock,
        )
        self._version = ""
        """The version of the API server, which is that of the simulated kubelets."""
        self._to_register: dict[str, tuple[ShapedNode, str]] = {}
        """The nodes to register, and their addresses, by name."""
        self._to_change: dict[str, ShapedNode] = {}
        """The registered nodes whose pool has changed, by name."""
        self._reservations: dict[str, Reservations] = {}
        """What nodes that were created for no pool reserve: what they had when they were first seen."""
        self._control_planes = settings.installation.control_plane_pool
        self._desired = DesiredNodes(pools=settings.nodes, control_planes=self._control_planes)
        self._nodes.add_handler(self._on_change)
        self._config_maps.add_handler(self._on_resize)

    async def run(self) -> None:
        await self._nodes.wait_synced()
        await self._config_maps.wait_synced()
        self._statuses.add(_ALL_NODES)
        events = {} if self._events is None else {"events": self._events.run()}
        renewals = self._registration.renewals.run()
        await run_all(leases=self._leases.run(), renewals=renewals, statuses=self._statuses.run(), **events)

    async def _sync_all(self) -> None:
        """Find the nodes to register, and queue all nodes."""
        config_map = self._config_maps.lister.get(*NODES_CONFIG_MAP)
        desired = desired_nodes(config_map, self._settings.nodes, self._settings.max_nodes)
        self._desired = replace(desired, control_planes=self._control_planes)
        self._version = (await self._client.raw("GET", "/version")).get("gitVersion") or ""
        registered = {meta.name(csi_node) for csi_node in (await self._client.list(kinds.CSI_NODES)).items}
        self._plan_registrations(registered)
        for name in [
            *self._to_register,
            *(meta.name(registered_node) for registered_node in self._nodes.lister.all()),
        ]:
            self._statuses.add(Key("", name))

    def _plan_registrations(self, registered: Container[str]) -> None:
        """Find the nodes to register and those whose pool has changed. `registered` are the names of CSINodes.

        An earlier process may have ended between the creation of the Node and that of the CSINode, which is the last.
        """
        self._to_register, self._to_change = {}, {}
        pools = self._desired.pools
        plain_pool = pools.by_name.get(DEFAULT_POOL)
        present_addresses = map(internal_ip, self._nodes.lister.all())
        addresses = NodeAddresses(present_addresses, plain_pool.count if plain_pool else 0)
        for desired in shaped_nodes(self._desired.all_pools):
            present = self._nodes.lister.get("", desired.name)
            if present is None:
                self._to_register[desired.name] = desired, addresses.allocate(node_number(desired.name))
            elif desired.name not in registered:
                self._to_register[desired.name] = desired, ""
            if present is not None and is_simulated(present) and recorded_shape(present) != desired.shape:
                self._to_change[desired.name] = desired

    def _on_resize(self, change: Change) -> None:
        if Key.of(change.last_known) == NODES_CONFIG_MAP:
            self._statuses.add(_ALL_NODES)

    def _on_change(self, change: Change) -> None:
        key = Key("", meta.name(change.new or change.old or {}))
        if change.new is None:
            self._records.remove(meta.uid(change.last_known))
            self._reservations.pop(key.name, None)
        self._leases.add(key)
        self._statuses.add(key)
        if self._events is not None:
            self._events.on_change(change)

    async def _heartbeat(self, key: Key) -> timedelta | None:
        return await self._registration.heartbeat(key.name)

    async def _sync(self, key: Key) -> timedelta | None:
        if key == _ALL_NODES:
            await self._sync_all()
            return None
        if key.name in self._to_register:
            await self._registration.register(self._node(*self._to_register[key.name]))
            self._to_register.pop(key.name, None)
        present = self._nodes.lister.get("", key.name)
        if present is not None and key.name in self._to_change:
            return None if await self._change(present) else _RETRY  # the change queues the node again
        if present is not None and is_simulated(present) and self._desired.is_surplus(present):
            await self._delete(present)
            return None
        if present is None or not is_simulated(present) or self._status_writer.is_outdated(present):
            return None
        if self._registry.lacks_pod_cidr(present):
            return None  # it has no network and does not become ready
        if stopped_units(present):
            return None  # its status stays as it is, until its units change it
        delay = await self._stages.run(key, present)
        if delay is not None:  # no stage has changed the node
            await self._correct(key, present)
        return delay

    async def _correct(self, key: Key, present: ReadOnlyTree) -> None:
        """Correct the status as a kubelet does after another client has changed it."""
        if not self._acts_as_kubelet or not has_active_kubelet(present):
            return
        pool = self._desired.pool_of(present)
        if pool is None:
            status = present.get("status") or {}
            amounts = status.get("capacity") or {}, status.get("allocatable") or {}
            reserved = self._reservations.setdefault(key.name, reservations(*amounts))
        else:
            reserved = reservations(pool.capacity, pool.allocatable)
        annotations = meta.annotations(present)
        # The version of a node that another program created is its own, unless the annotation sets it.
        follows = pool is not None or KUBELET_VERSION in annotations
        version = kubelet_version(annotations, self._version) if follows else ""
        body = correction(present, pool, reserved, address=self._registry.ip_of(key.name), version=version)
        if body is not None:
            if "nodeInfo" in body["status"] and is_unsupported(annotations, self._version):
                LOG.warning(
                    "Node %s: its kubelet is %s, because the API server %s does not support %s=%s",
                    *(key.name, version, self._version, KUBELET_VERSION, annotations[KUBELET_VERSION]),
                )
            await self._status_writer.execute(key, present, [PatchObject(body=body, kind="merge")])

    async def _change(self, present: ReadOnlyTree) -> bool:
        """Change a node as its pool has changed; return False if another client has changed it meanwhile."""
        name = meta.name(present)
        with suppress(Conflict):
            await self._registration.change(present, self._node(self._to_change[name]))
            self._to_change.pop(name, None)
        return name not in self._to_change

    def _node(self, desired: ShapedNode, address: str = "") -> dict[str, Any]:
        version = kubelet_version(desired.pool.annotations, self._version)
        return node(desired, address, version=version, now=self._clock.now())

    async def _delete(self, present: ReadOnlyTree) -> None:
        """Delete a node as `kubectl delete node` does: the garbage collector deletes its pods."""
        with suppress(NotFound, Conflict):  # It was deleted already, and another node may have its name.
            await self._client.delete(kinds.NODES, Key.of(present), uid=meta.uid(present))

    def _loop(
        self, context: KubeletContext, name: str, reconcile: Any, requeue_clock: Clock
    ) -> ReconcileLoop:
        return ReconcileLoop(
            name,
            reconcile,
            workers=WORKERS,
            clock=context.clock,
            metrics=context.metrics,
            requeue_clock=requeue_clock,
        )
