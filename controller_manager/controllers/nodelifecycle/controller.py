"""The node lifecycle controller: it marks nodes without heartbeats as Unknown, and taints nodes by their conditions."""

import logging
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, NAMESPACE_NODE_LEASE
from mockube.client.cache.store import Change
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.kinds import LEASES, NODES, PODS
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.supervision import run_all
from mockube.controller_manager.control.runnable import Context, Runnable

from . import health, taints
from .health import NodeHealth
from .leases import LeaseReader, StaleLeaseError
from .monitor import NodeMonitor
from .zones import (
    BY_ZONE,
    EvictionLimits,
    Zone,
    ZoneSize,
    ZoneState,
    rate_of,
    sizes_of,
    state_of,
    zone_and_readiness,
    zone_of,
)

LOG = logging.getLogger(__name__)

WORKERS: Final = 8
EVENT_SOURCE: Final = "node-controller"


class NodeLifecycleController:
    def __init__(self, context: Context) -> None:
        options = context.options.controllers
        self._client, self._clock = context.client, context.clock
        self._recorder = context.recorder.of(EVENT_SOURCE)
        self._period = options.node_monitor_period
        self._grace = timedelta(seconds=options.node_monitor_grace_period)
        self._limits = EvictionLimits(
            rate=options.node_eviction_rate,
            slow_rate=options.secondary_node_eviction_rate,
            threshold=options.unhealthy_zone_threshold,
            large=options.large_cluster_size_threshold,
        )
        self._nodes, self._leases = context.informers.of(NODES), context.informers.of(LEASES)
        self._pods = context.informers.of(PODS)
        self._pods.add_index(BY_NODE, node_of_pod)
        self._nodes.add_tally(BY_ZONE, zone_and_readiness)
        self._loop = ReconcileLoop(
            "node_lifecycle_controller",
            self._reconcile_no_schedule_taints,
            workers=WORKERS,
            clock=context.clock,
            metrics=context.metrics,
        )
        self._nodes.add_handler(self._on_change)
        self._leases.add_handler(self._on_lease_change)
        self._changed_nodes: dict[str, None] = {}
        self._changed_leases: set[str] = set()
        """The names of nodes that changed, and of those whose Leases did, since the last round of the monitor."""
        self._observed_nodes: dict[str, ReadOnlyTree] = {}
        """The nodes as they were at the beginning of the last round."""
        self._health: dict[str, NodeHealth] = {}
        self._lease_reader = LeaseReader(context)
        self._metrics = NodeMonitor(context.metrics.registry)
        self._nodes_to_mark: set[str] = set()
        """The names of nodes whose pods have to be marked as not ready."""
        self._nodes_to_taint: set[str] = set()
        """The names of nodes whose NoExecute taint may be wrong."""
        self._zones: dict[str, Zone] = {}
        self._is_all_disrupted = False

    async def run(self) -> None:
        for informer in (self._nodes, self._leases, self._pods):
            await informer.wait_synced()
        await run_all(loop=self._loop.run(), monitor=self._monitor())

    def _on_change(self, change: Change) -> None:
        self._changed_nodes[meta.name(change.last_known)] = None
        if change.new is not None:
            self._loop.add(Key("", meta.name(change.new)))

    def _on_lease_change(self, change: Change) -> None:
        if meta.namespace(change.last_known) == NAMESPACE_NODE_LEASE:
            self._changed_leases.add(meta.name(change.last_known))

    async def _reconcile_no_schedule_taints(self, key: Key) -> None:
        node = self._nodes.lister.get("", key.name)
        desired = None if node is None else taints.with_no_schedule_taints(node, self._clock.now())
        if node is not None and desired is not None:
            await self._set_taints(node, desired)

    # --- the health of nodes

    async def _monitor(self) -> None:
        """Observe the nodes that sent something or are silent, and adapt taints: rounds cost nothing for any other node."""
        while True:
            renewed, self._changed_leases = self._changed_leases, set()
            began, changed = self._clock.monotonic(), self._observe_changes()
            zones = sizes_of(self._nodes.lister)
            names = renewed.union(changed, self._silent_nodes(), self._nodes_to_mark)
            for node in self._in_order(names):
                node_began = self._clock.monotonic()
                await self._run_for_node(node, self._update_health)
                self._metrics.node.observe(self._clock.monotonic() - node_began)
            self._metrics.all_nodes.observe(self._clock.monotonic() - began)
            self._nodes_to_taint.update(self._observed_nodes.keys() & changed)
            await self._reconcile_no_execute_taints(zones)
            has_work = self._nodes_to_mark or self._nodes_to_taint
            await (self._clock if has_work else self._clock.routine).sleep(self._period)

    def _silent_nodes(self) -> Iterable[str]:
        """Return the names of the nodes that sent no heartbeat for so long that they may be silent."""
        limit = self._clock.now() - min(self._grace, health.STARTUP_GRACE)
        return [name for name, of_node in self._health.items() if of_node.observed_at < limit]

    def _in_order(self, names: Container[str]) -> Sequence[ReadOnlyTree]:
        """Return the observed nodes of these names, in the order in which they were observed first."""
        return [node for name, node in self._observed_nodes.items() if name in names]

    async def _run_for_node(
        self, node: ReadOnlyTree, function: "Callable[[ReadOnlyTree], Coroutine[Any, Any, None]]"
    ) -> None:
        """Run a function for a node, and log its error: the next round retries it, and other nodes are not affected."""
        try:
            await function(node)
        except (ApiError, NoResponse, StaleLeaseError) as error:
            LOG.warning("node %s: %s", meta.name(node), error)

    def _observe_changes(self) -> Iterable[str]:
        """Observe the nodes that changed since the last round; return their names."""
        changed, self._changed_nodes = self._changed_nodes, {}
        for name in changed:
            node, before = self._nodes.lister.get("", name), self._observed_nodes.get(name)
            if node is not None:
                self._observed_nodes[name] = node
                if before is None:
                    self._record_event(node, "RegisteredNode", f"Registered Node {name} in Controller")
            elif before is not None:
                self._record_event(before, "RemovingNode", f"Removing Node {name} from Controller")
                self._forget(name)
        return changed

    def _forget(self, name: str) -> None:
        del self._observed_nodes[name]
        self._health.pop(name, None)
        self._nodes_to_mark.discard(name)
        self._nodes_to_taint.discard(name)

    def _record_event(self, node: ReadOnlyTree, reason: str, event: str) -> None:
        self._recorder.record(node, "Normal", reason, f"Node {meta.name(node)} event: {event}")

    async def _update_health(self, node: ReadOnlyTree) -> None:
        name, now = meta.name(node), self._clock.now()
        lease = self._leases.lister.get(NAMESPACE_NODE_LEASE, name)
        node_health = self._health[name] = health.observe(self._health.get(name), node, lease, now)
        if self._lease_reader.is_behind:
            return
        if health.is_silent(node_health, now, self._grace):
            changes = health.unknown_conditions(node, now)
            if changes:
                await self._lease_reader.check(name, node_health.lease_version)
                await self._write_status(node, {"conditions": changes})
            if changes and conditions.is_true(node, CONDITION_READY):
                status = "NodeNotReady"
                self._recorder.record(node, "Normal", status, f"Node {name} status is now: {status}")
                self._nodes_to_mark.add(name)
        if name in self._nodes_to_mark:
            await self._mark_pods_not_ready(name)
            self._nodes_to_mark.discard(name)

    async def _write_status(self, node: ReadOnlyTree, status: ReadOnlyTree) -> None:
        key, body = Key("", meta.name(node)), {"metadata": {"uid": meta.uid(node)}, "status": status}
        await self._client.patch(NODES, key, body, kind="strategic", subresource="status")

    async def _mark_pods_not_ready(self, node: str) -> None:
        """Mark the pods of a node without heartbeats as not ready."""
        for pod in self._pods.lister.by_index(BY_NODE, node):
            if pod.is_ready:
                condition = {
                    "type": CONDITION_READY,
                    "status": "False",
                    "lastTransitionTime": format_time(self._clock.now()),
                }
                body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
                await self._client.patch(PODS, pod.key, body, kind="strategic", subresource="status")
                self._recorder.record(pod.object, "Warning", "NodeNotReady", "Node is not ready")

    # --- NoExecute taints

    async def _reconcile_no_execute_taints(self, zones: Mapping[str, ZoneSize]) -> None:
        self._metrics.report_zones(zones)
        states = {zone: state_of(size, self._limits) for zone, size in zones.items()}
        was_all_disrupted = self._is_all_disrupted
        self._is_all_disrupted = bool(states) and set(states.values()) == {ZoneState.FULL}
        if self._is_all_disrupted:
            # If no node sends heartbeats, the network of this manager is more likely broken.
            for node in list(self._observed_nodes.values()):
                await self._run_for_node(node, self._remove_taint)
            return
        if was_all_disrupted:
            now = self._clock.now()
            self._health = {
                name: node_health.with_heartbeat_at(now) for name, node_health in self._health.items()
            }
            return
        rates = {zone: rate_of(state, zones[zone].nodes, self._limits) for zone, state in states.items()}
        for node in self._in_order(self._nodes_to_taint) if self._nodes_to_taint else ():
            await self._run_for_node(
                node, lambda node: self._taint(node, rates.get(zone_of(node), self._limits.rate))
            )

    async def _remove_taint(self, node: ReadOnlyTree) -> None:
        remaining_taints = taints.with_no_execute_taint(node, "True", self._clock.now())
        if remaining_taints is not None:
            await self._set_taints(node, remaining_taints)

    async def _taint(self, node: ReadOnlyTree, rate: float) -> None:
        ready, now = conditions.get(node, CONDITION_READY), self._clock.now()
        desired = taints.with_no_execute_taint(node, ready["status"], now) if ready else None
        if ready is None or desired is None:
            self._nodes_to_taint.discard(meta.name(node))
            return
        is_new = ready["status"] != "True" and not taints.has_no_execute_taint(node)
        if not is_new or self._zones.setdefault(zone_of(node), Zone()).try_accept(now, rate):
            await self._set_taints(node, desired)
            if is_new:
                self._metrics.record_eviction(zone_of(node))

    async def _set_taints(self, node: ReadOnlyTree, desired: taints.Taints) -> None:
        # The patch replaces the whole list, so it has the version of the list that was read.
        metadata = {"resourceVersion": meta.resource_version(node)}
        body = {"metadata": metadata, "spec": {"taints": desired or None}}
        await self._client.patch(NODES, Key("", meta.name(node)), body)


NODE_LIFECYCLE: Final = Runnable(
    name="node-lifecycle-controller", service_account="node-controller", build=NodeLifecycleController
)
