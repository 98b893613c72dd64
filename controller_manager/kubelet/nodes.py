"""The runnable of simulated nodes: registration, Leases, and the stages of their status."""

from collections.abc import Container
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import Conflict, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.supervision import run_all
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client import kinds
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.config.networks import IPAM, allocates, max_nodes
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.runner import ReconcileLoop

from .node_events import NodeEvents
from .node_objects import is_simulated, node, node_name
from .node_registry import NodeRegistry
from .registration import NodeRegistration
from .resizing import NODES_CONFIG_MAP, DesiredNodes, desired_nodes, node_number
from .stages.files import load_stages, of_kind
from .stages.runner import StageRunner
from .status_writer import StatusWriter
from .template_context import TemplateContext

WORKERS: Final = 8
EVENT_SOURCE: Final = "kwok_controller"
"""The event source of stages; kwok's."""
_ALL_NODES: Final = Key("", "")
"""The key that stands for all nodes: its reconciliation finds the nodes to register and to delete."""


class SimulatedNodes:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        self._options = context.options.simulation
        self._max_nodes = max_nodes(context.options)
        self._nodes = context.informers.of(kinds.NODES)
        self._config_maps = context.informers.of(kinds.CONFIG_MAPS)
        self._registry = registry = NodeRegistry(
            self._nodes.lister,
            context.informers.of(kinds.PODS).lister,
            details=False,
            waits_for_pod_cidrs=allocates(context.options) and IPAM in context.names,
        )
        self._registration = NodeRegistration(
            context.client,
            registry,
            clock=context.clock,
            grace_period=context.options.controllers.node_monitor_grace_period,
        )
        self._status_writer = StatusWriter(
            context.client, context.recorder.of(EVENT_SOURCE), kinds.NODES, context.clock
        )
        stages = of_kind("Node", load_stages(self._options.stages))
        emits_events = self._options.simulate_kubelet_details and stages == of_kind("Node", load_stages(()))
        kubelet = context.recorder.of("kubelet")
        self._events = NodeEvents(kubelet, context.clock) if emits_events else None
        self._stages = StageRunner(
            stages,
            self._status_writer,
            TemplateContext.of(registry, context.clock, lambda: self._version).node_functions,
            clock=context.clock,
            random=context.random,
        )
        self._leases = self._loop(context, "simulated-leases", self._heartbeat)
        self._statuses = self._loop(context, "simulated-nodes", self._sync)
        self._version = ""
        """The version of the API server, which is that of the simulated kubelets."""
        self._nodes_to_register: dict[str, dict[str, Any]] = {}
        """The nodes to register, by name."""
        self._desired = DesiredNodes(nodes=self._options.simulate_nodes)
        self._nodes.add_handler(self._on_change)
        self._config_maps.add_handler(self._on_resize)

    async def run(self) -> None:
        await self._nodes.wait_synced()
        await self._config_maps.wait_synced()
        self._statuses.add(_ALL_NODES)
        events = {} if self._events is None else {"events": self._events.run()}
        await run_all(leases=self._leases.run(), statuses=self._statuses.run(), **events)

    async def _sync_all(self) -> None:
        """Find the nodes to register, and queue all nodes."""
        config_map = self._config_maps.lister.get(*NODES_CONFIG_MAP)
        desired = desired_nodes(config_map, self._options, self._max_nodes)
        self._version = (await self._client.raw("GET", "/version")).get("gitVersion") or ""
        registered = {meta.name(csi_node) for csi_node in (await self._client.list(kinds.CSI_NODES)).items}
        capacity = dict(self._options.simulate_node_capacity)
        self._nodes_to_register = {
            name: node(number, desired, capacity=capacity, version=self._version, now=self._clock.now())
            for number in range(1, desired.nodes + 1)
            if self._needs_registration(name := node_name(number), registered)
        }
        self._desired = desired
        for name in [
            *self._nodes_to_register,
            *(meta.name(registered_node) for registered_node in self._nodes.lister.all()),
        ]:
            self._statuses.add(Key("", name))

    def _needs_registration(self, name: str, registered: Container[str]) -> bool:
        """Return whether a node is to be registered.

        An earlier process may have ended between the creation of the Node and that of the CSINode, which is the last.
        """
        return self._nodes.lister.get("", name) is None or name not in registered

    def _on_resize(self, change: Change) -> None:
        if Key.of(change.last_known) == NODES_CONFIG_MAP:
            self._statuses.add(_ALL_NODES)

    def _on_change(self, change: Change) -> None:
        key = Key("", meta.name(change.new or change.old or {}))
        if change.new is None:
            self._stages.forget(key)
            self._status_writer.forget(key)
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
        node_to_register = self._nodes_to_register.get(key.name)
        if node_to_register is not None:
            await self._registration.register(node_to_register)
            self._nodes_to_register.pop(key.name, None)
        present = self._nodes.lister.get("", key.name)
        if present is not None and self._is_surplus(present):
            await self._delete(present)
            return None
        if present is None or not is_simulated(present) or self._status_writer.is_outdated(key, present):
            return None
        # A node without a podCIDR has no network and does not become ready.
        return None if self._registry.lacks_pod_cidr(present) else await self._stages.run(key, present)

    def _is_surplus(self, present: ReadOnlyTree) -> bool:
        number = node_number(meta.name(present)) or 0
        return self._desired.deletes_surplus and number > self._desired.nodes and is_simulated(present)

    async def _delete(self, present: ReadOnlyTree) -> None:
        """Delete a node as `kubectl delete node` does: the garbage collector deletes its pods."""
        with suppress(NotFound, Conflict):  # It was deleted already, and another node may have its name.
            await self._client.delete(kinds.NODES, Key.of(present), uid=meta.uid(present))

    def _loop(self, context: Context, name: str, reconcile: Any) -> ReconcileLoop:
        return ReconcileLoop(name, reconcile, workers=WORKERS, clock=context.clock, metrics=context.metrics)


SIMULATED_NODES: Final = Runnable(name="simulated-nodes", service_account="", build=SimulatedNodes)
