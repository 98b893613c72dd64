"""The systemd units of nodes: what starts and stops the kubelet and the container runtime, and what follows from it.

The annotation `mockube.dev/stopped-units` of the node has what does not run, so that it outlives the manager, and can be set by kubectl.
"""

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import Conflict, NotFound
from mockube.apimachinery.timestamps import format_micro_time, format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import STOPPED_UNITS
from mockube.client.cache.store import Change
from mockube.client.kinds import NODES
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.container_runtime.node_journal import JournalEntry
from mockube.container_runtime.node_machine import NodeMachines, ServiceFailed
from mockube.container_runtime.node_processes import CONTAINERD_PID, KUBELET_PID
from mockube.kubelet.node_objects import StoppedUnit, runs_kubelet, stopped_units
from mockube.kubelet.settings import KubeletContext

from . import journal
from .kubelet_start import ReadFile, StartResult, start_kubelet

MAX_ENTRIES: Final = 300
"""The entries that are kept of a node whose units were stopped or started."""
_RUNTIME_DOWN: Final = timedelta(seconds=30)
"""The time after which a kubelet counts its container runtime as down."""
_RELIST_OLD: Final = timedelta(minutes=3)
"""The time after which a kubelet also reports that it has not listed its containers."""
_FOLDERS: Final = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system")
_DESCRIPTIONS: Final = {
    "kubelet": "kubelet.service - kubelet: The Kubernetes Node Agent",
    "containerd": "containerd.service - containerd container runtime",
}
_PIDS: Final = {"kubelet": KUBELET_PID, "containerd": CONTAINERD_PID}


class NodeUnits:
    def __init__(
        self, context: KubeletContext, machines: NodeMachines, servers: Callable[[], Sequence[str]]
    ) -> None:
        self._client, self._clock = context.client, context.clock
        self._nodes = context.informers.of(NODES)
        self._machines = machines
        self._servers = servers
        self._written: dict[str, tuple[int, dict[str, StoppedUnit]]] = {}
        """The units that were written last, with the resourceVersion, by node: the cache may not have them yet."""
        self._seen: dict[str, datetime] = {}
        """When a container runtime was first seen stopped, by node: an annotation of a user has no time."""
        self._entries: dict[str, deque[JournalEntry]] = {}
        self._loop = ReconcileLoop(
            "node-units", self._reconcile, workers=1, clock=context.clock, metrics=context.metrics
        )
        self._nodes.add_handler(self._on_node_change)

    async def run(self) -> None:
        await self._loop.run()

    def _on_node_change(self, change: Change) -> None:
        name = meta.name(change.last_known)
        if change.new is None:
            self._entries.pop(name, None)
            self._written.pop(name, None)
            self._seen.pop(name, None)
        elif stopped_units(change.new) or name in self._seen:
            self._loop.add(Key("", name))

    def stopped(self, node: ReadOnlyTree) -> dict[str, StoppedUnit]:
        """Return the units of a node that do not run."""
        version, units = self._written.get(meta.name(node), (0, {}))
        return units if int(meta.resource_version(node) or 0) < version else stopped_units(node)

    def states(self, node: ReadOnlyTree) -> dict[str, Any]:
        """Return the states of the units of a node, as systemctl shows them."""
        stopped = self.stopped(node)
        created = meta.metadata(node).get("creationTimestamp") or ""
        states: dict[str, Any] = {}
        for unit, pid in _PIDS.items():
            present = stopped.get(unit)
            since = _time(present.since if present else self._started_at(node, unit) or created)
            states[unit] = {
                "state": present.state if present else "running",
                "since": since.isoformat() if since else "",
                "pid": pid,
            }
        result = self._start(node)
        states["kubelet"] |= {"command": result.command, "result": "exit-code", "status": result.status}
        states["containerd"] |= {"command": "/usr/bin/containerd"}
        return states

    def _started_at(self, node: ReadOnlyTree, unit: str) -> str:
        entries = self._entries.get(meta.name(node), ())
        times = [
            entry.at
            for entry in entries
            if entry.unit == f"{unit}.service" and entry.text.startswith("Started")
        ]
        return format_micro_time(times[-1]) if times else ""

    def entries(self, node: ReadOnlyTree) -> list[JournalEntry]:
        """Return the journal of the units of a node."""
        name, now = meta.name(node), self._clock.now()
        entries = [*self._entries.get(name, ())]
        kubelet = self.stopped(node).get("kubelet")
        since = _time(kubelet.since) if kubelet else None
        if kubelet is not None and since is not None:
            entries += self._trouble(node, kubelet, since, now)
        return entries

    def _trouble(
        self, node: ReadOnlyTree, unit: StoppedUnit, since: datetime, now: datetime
    ) -> list[JournalEntry]:
        result = self._start(node)
        if unit.state == "failed" and result.problem:
            return [*journal.failure_entries(result.problem, result.status, since, now)]
        if unit.state == "cut-off" and result.unreachable:
            return [*journal.cut_off_entries(result.unreachable, meta.name(node), since, now)]
        return []

    # --- changes

    async def change(self, node: ReadOnlyTree, unit: str, action: str) -> None:
        """Start, stop or restart a unit."""
        if unit not in _PIDS:
            raise ServiceFailed(f"Unit {unit}.service not found.")
        stopped = self.stopped(node)
        runs = unit not in stopped or stopped[unit].state == "cut-off"
        if action == "start" and runs:
            return
        if action in ("stop", "restart") and (runs or stopped[unit].state == "failed"):
            self._note_stop(node, unit)
        if action == "stop":
            if unit not in stopped or stopped[unit].state != "stopped":
                await self._write(
                    node, {**stopped, unit: StoppedUnit("stopped", format_micro_time(self._clock.now()))}
                )
            return
        await self._start_unit(node, unit, {name: state for name, state in stopped.items() if name != unit})

    async def _start_unit(self, node: ReadOnlyTree, unit: str, others: dict[str, StoppedUnit]) -> None:
        now = self._clock.now()
        if unit == "containerd":
            self._note(node, journal.systemd_line(now, unit, f"Started {_DESCRIPTIONS[unit]}."))
            await self._write(node, others)
            return
        result = self._start(node, has_runtime="containerd" not in others)
        if result.state == "running":
            self._note(node, *journal.start_entries(node, now))
            await self._write(node, others)
        else:
            await self._write(node, {**others, unit: StoppedUnit(result.state, format_micro_time(now))})

    def _note_stop(self, node: ReadOnlyTree, unit: str) -> None:
        now = self._clock.now()
        present = self.stopped(node).get(unit)
        since = _time(present.since) if present else None
        if present is not None and since is not None:
            self._note(node, *self._trouble(node, present, since, now))
        self._note(
            node,
            journal.systemd_line(now, unit, f"Stopping {_DESCRIPTIONS[unit]}..."),
            journal.systemd_line(now, unit, f"{unit}.service: Deactivated successfully."),
            journal.systemd_line(now, unit, f"Stopped {_DESCRIPTIONS[unit]}."),
        )

    def _note(self, node: ReadOnlyTree, *entries: JournalEntry) -> None:
        self._entries.setdefault(meta.name(node), deque(maxlen=MAX_ENTRIES)).extend(entries)

    async def _write(self, node: ReadOnlyTree, units: dict[str, StoppedUnit]) -> None:
        text = ",".join(f"{name}={unit.state}@{unit.since}" for name, unit in units.items())
        body = {"metadata": {"annotations": {STOPPED_UNITS: text or None}}}
        try:
            written = await self._client.patch(NODES, Key.of(node), body)
        except NotFound as error:
            raise ServiceFailed(f"the node {meta.name(node)} does not exist any more") from error
        self._written[meta.name(node)] = int(meta.resource_version(written)), units

    def _start(self, node: ReadOnlyTree, *, has_runtime: bool | None = None) -> StartResult:
        name = meta.name(node)
        read = _reader(self._machines, name)
        runs_runtime = "containerd" not in self.stopped(node) if has_runtime is None else has_runtime
        return start_kubelet(
            read, [*self._texts(name, read)], servers=self._servers(), has_runtime=runs_runtime
        )

    def _texts(self, name: str, read: ReadFile) -> list[str]:
        """Return the texts of the unit of the kubelet and of its drop-ins."""
        unit = next(
            (data for folder in _FOLDERS if (data := read(f"{folder}/kubelet.service")) is not None), b""
        )
        drop_ins: dict[str, str] = {}
        for folder in reversed(_FOLDERS):
            path = f"{folder}/kubelet.service.d"
            drop_ins |= {
                each: f"{path}/{each}"
                for each in self._machines.children(name, path)
                if each.endswith(".conf")
            }
        contents = [unit, *(read(drop_ins[each]) or b"" for each in sorted(drop_ins))]
        return [content.decode("utf-8", "replace") for content in contents]

    # --- what happens while a unit does not run

    async def _reconcile(self, key: Key) -> timedelta | None:
        node = self._nodes.lister.get(*key)
        if node is None:
            return None
        stopped = self.stopped(node)
        kubelet, runtime = stopped.get("kubelet"), stopped.get("containerd")
        if kubelet is not None and kubelet.state == "failed":
            await self._machines.refresh(key.name)
            if self._start(node).state != "failed":
                others = {name: state for name, state in stopped.items() if name != "kubelet"}
                await self._start_unit(node, "kubelet", others)
            return timedelta(seconds=journal.RESTART_SECONDS)
        if runtime is None:
            self._seen.pop(key.name, None)
        elif runs_kubelet(node):
            seen = self._seen.setdefault(key.name, self._clock.now())
            return await self._report_runtime(key, node, _time(runtime.since) or seen)
        return None

    async def _report_runtime(self, key: Key, node: ReadOnlyTree, since: datetime) -> timedelta | None:
        """Report that the node is not ready, as a kubelet does when its container runtime does not answer."""
        stopped_for = self._clock.now() - since
        if stopped_for < _RUNTIME_DOWN:
            return _RUNTIME_DOWN - stopped_for
        message = "container runtime is down"
        if stopped_for >= _RELIST_OLD:
            seconds = int(stopped_for.total_seconds())
            message = f"[{message}, PLEG is not healthy: pleg was last seen active {seconds // 60}m{seconds % 60}s ago; threshold is 3m0s]"
        ready = _ready_condition(node)
        is_reported = ("PLEG" in ready.get("message", "")) == ("PLEG" in message)
        if ready.get("status") != "False" or not is_reported:
            now = format_time(self._clock.now())
            changed = {} if ready.get("status") == "False" else {"lastTransitionTime": now}
            condition = {
                **ready, "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message, "lastHeartbeatTime": now, **changed
            }  # fmt: skip
            try:
                body = {"status": {"conditions": [condition]}}
                await self._client.patch(NODES, key, body, subresource="status", kind="strategic")
            except (NotFound, Conflict):
                return None
        return None if stopped_for >= _RELIST_OLD else _RELIST_OLD - stopped_for


def _ready_condition(node: ReadOnlyTree) -> ReadOnlyTree:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "Ready"), {})


def _reader(machines: NodeMachines, node: str) -> ReadFile:
    def read(path: str) -> bytes | None:
        file = machines.find(node, path)
        return None if file is None or file.is_directory else file.data

    return read


def _time(text: str) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
