"""The kubelet and the container runtime of a node as systemd units: how they start and stop, and what follows from it."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import Conflict, NotFound
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apimachinery.wellknown import STOPPED_UNITS
from mockube.client.cache.store import Change
from mockube.client.kinds import NODES
from mockube.client.metrics.process import Metrics
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.container_runtime.simulated.node.root_files import KUBELET_DROP_IN, KUBELET_UNIT, root_files
from mockube.kubelet.node_machine import units
from mockube.kubelet.node_machine.units import NodeUnits
from mockube.kubelet.node_objects import SIMULATED_NODE_ANNOTATION
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.node_machine import NODE, SERVER

CONFIG = "/var/lib/kubelet/config.yaml"
KUBECONFIG = "/etc/kubernetes/kubelet.conf"


class Machines:
    def __init__(self):
        entries = root_files(NODE, (), server=SERVER, authority=b"CA")
        self.files = {path: entry.data for path, entry in entries.items() if entry.data is not None}
        self.refreshed = []

    def find(self, _, path):
        if path not in self.files:
            return None
        return SimpleNamespace(is_directory=self.files[path] is None, data=self.files[path] or b"")

    def children(self, _, folder):
        return [path.rpartition("/")[2] for path in self.files if path.rpartition("/")[0] == folder]

    async def refresh(self, node):
        self.refreshed.append(node)


class Node:
    """A node with units; what they write is an annotation of it."""

    def __init__(self, stopped="", *, simulated=True, ready=None, exists=True):
        self.clock, self.machines = SteppedClock(), Machines()
        self.annotations = dict([SIMULATED_NODE_ANNOTATION]) if simulated else {}
        if stopped:
            self.annotations[STOPPED_UNITS] = stopped
        self.conditions = [{"type": "MemoryPressure", "status": "False"}, *([ready] if ready else [])]
        self.version, self.error, self.patches = 5, None, []
        self.exists = exists
        informers = SimpleNamespace(of=lambda _: self)
        context = SimpleNamespace(
            client=self, clock=self.clock, informers=informers, metrics=Metrics(self.clock)
        )
        self.units = NodeUnits(context, self.machines, lambda: [SERVER])

    @property
    def tree(self):
        metadata = {**NODE["metadata"], "annotations": self.annotations, "resourceVersion": str(self.version)}
        return {**NODE, "metadata": metadata, "status": {**NODE["status"], "conditions": self.conditions}}

    @property
    def lister(self):
        return FakeCaches({NODES: [self.tree] if self.exists else []}).of(NODES)

    def add_handler(self, handler):
        self.handler = handler

    async def patch(self, resource, key, body, **options):
        assert (resource, key) == (NODES, Key("", "node-1"))
        if self.error is not None:
            raise self.error
        self.patches.append((body, options))
        return {"metadata": {"resourceVersion": "9"}}

    @property
    def written(self):
        return [body["metadata"]["annotations"][STOPPED_UNITS] for body, _ in self.patches]

    def texts(self):
        return [entry.text for entry in self.units.entries(self.tree)]

    async def reconcile(self):
        return await self.units._reconcile(Key("", "node-1"))


SINCE = "2029-12-31T23:59:50.000000Z"


def written_at(node, text):
    return text and text.replace("NOW", format_micro_time(node.clock.now()))


STOP = "Deactivated successfully."
START = "Started"


@pytest.mark.parametrize(
    ("stopped", "unit", "action", "written", "logged"),
    [
        ("", "kubelet", "start", [], []),
        ("", "kubelet", "stop", ["kubelet=stopped@NOW"], [STOP]),
        ("", "kubelet", "restart", [None], [STOP, START]),
        ("", "containerd", "stop", ["containerd=stopped@NOW"], [STOP]),
        ("", "containerd", "restart", [None], [STOP, START]),
        (f"kubelet=stopped@{SINCE}", "kubelet", "start", [None], [START]),
        (f"kubelet=stopped@{SINCE}", "kubelet", "stop", [], []),
        (f"kubelet=stopped@{SINCE}", "kubelet", "restart", [None], [START]),
        (f"kubelet=failed@{SINCE}", "kubelet", "stop", ["kubelet=stopped@NOW"], [STOP]),
        (f"kubelet=failed@{SINCE}", "kubelet", "start", [None], [START]),
        (f"kubelet=cut-off@{SINCE}", "kubelet", "start", [], []),
        (f"kubelet=cut-off@{SINCE}", "kubelet", "stop", ["kubelet=stopped@NOW"], [STOP]),
        (f"containerd=stopped@{SINCE}", "containerd", "start", [None], [START]),
        (f"containerd=stopped@{SINCE}", "kubelet", "restart", [f"containerd=stopped@{SINCE},kubelet=failed@NOW"], [STOP]),
        (
            f"kubelet=stopped@{SINCE},containerd=stopped@{SINCE}",
            "containerd",
            "start",
            [f"kubelet=stopped@{SINCE}"],
            [START],
        ),
    ],
)  # fmt: skip
async def test_change_of_a_unit(stopped, unit, action, written, logged):
    node = Node(stopped)
    await node.units.change(node.tree, unit, action)
    assert node.written == [written_at(node, text) for text in written]
    entries = node.units._entries.get("node-1", ())
    found = [
        word
        for entry in entries
        for word in (STOP, START)
        if word in entry.text.split(" kubelet.service -")[0] and entry.pid == 1
    ]
    assert found == logged
    if logged:
        assert {entry.unit for entry in entries if entry.pid == 1} == {f"{unit}.service"}


async def test_unknown_unit_and_node_that_is_gone():
    node = Node()
    with pytest.raises(ServiceFailed, match=r"Unit nginx.service not found\."):
        await node.units.change(node.tree, "nginx", "stop")
    node.error = NotFound("x")
    with pytest.raises(ServiceFailed, match="the node node-1 does not exist any more"):
        await node.units.change(node.tree, "kubelet", "stop")


@pytest.mark.parametrize(
    ("path", "old", "new", "state"),
    [
        (CONFIG, b"kind: KubeletConfiguration", b"kind: X", "failed"),
        (KUBECONFIG, b":6443", b":1", "cut-off"),
    ],
)
async def test_kubelet_that_does_not_come_up_has_its_state_and_its_journal(path, old, new, state):
    node = Node(f"kubelet=stopped@{SINCE}")
    node.machines.files[path] = node.machines.files[path].replace(old, new)
    await node.units.change(node.tree, "kubelet", "start")
    assert node.written == [written_at(node, f"kubelet={state}@NOW")]
    assert node.units.stopped(node.tree)["kubelet"].state == state, "the cache has an older version"
    words = {"failed": 'no kind "X"', "cut-off": "dial tcp 10.0.0.9:1: connect: connection refused"}[state]
    assert any(words in text.replace("\\", "") for text in node.texts())
    node.version = 9
    assert node.units.stopped(node.tree)["kubelet"].state == "stopped"
    assert node.texts() == []
    node.version = 5
    await node.units.change(node.tree, "kubelet", "stop")
    kept = [entry.text for entry in node.units._entries["node-1"]]
    assert any(words in text.replace("\\", "") for text in kept), "what was logged until then remains"


def test_states_that_systemctl_shows():
    node = Node()
    created = "2026-01-01T00:00:00+00:00"
    states = node.units.states(node.tree)
    assert {unit: (each["state"], each["since"], each["pid"]) for unit, each in states.items()} == {
        unit: ("running", created, pid) for unit, pid in units._PIDS.items()
    }
    assert states["kubelet"]["command"].startswith("/usr/bin/kubelet --")
    assert (states["kubelet"]["result"], states["kubelet"]["status"]) == ("exit-code", "1/FAILURE")
    assert states["containerd"]["command"] == "/usr/bin/containerd"


@pytest.mark.parametrize(("since", "shown"), [(SINCE, "2029-12-31T23:59:50+00:00"), ("x", ""), ("", "")])
def test_state_of_a_stopped_unit(since, shown):
    node = Node(f"kubelet=failed@{since}")
    state = node.units.states(node.tree)["kubelet"]
    assert (state["state"], state["since"]) == ("failed", shown)
    assert node.texts() == []


async def test_unit_that_was_started_runs_since_then():
    node = Node()
    node.clock.advance(60)
    await node.units.change(node.tree, "containerd", "restart")
    states = node.units.states(node.tree)
    assert states["containerd"]["since"] == node.clock.now().isoformat()
    assert states["kubelet"]["since"] == "2026-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("folder", "wins"),
    [("/etc/systemd/system", True), ("/run/systemd/system", True), ("/usr/local/lib/systemd/system", False)],
)
def test_drop_ins_of_folders_that_go_before_replace_others(folder, wins):
    node = Node()
    name = KUBELET_DROP_IN.rpartition("/")[2]
    for file, text in ((name, "ExecStart=/usr/bin/kubelet --v=7"), ("z.md", "ExecStart=/x")):
        node.machines.files[f"{folder}/kubelet.service.d/{file}"] = text.encode()
    command = node.units.states(node.tree)["kubelet"]["command"]
    assert (command == "/usr/bin/kubelet --v=7") is wins
    for path in (KUBELET_UNIT, KUBELET_DROP_IN):
        del node.machines.files[path]
    command = node.units.states(node.tree)["kubelet"]["command"]
    assert command == ("/usr/bin/kubelet --v=7" if wins else "")


@pytest.mark.parametrize(
    ("change", "is_queued", "is_kept"),
    [
        (lambda node: Change(node.tree, None), False, False),
        (lambda node: Change(None, node.tree), False, True),
        (lambda _: Change(None, Node("kubelet=failed").tree), True, True),
    ],
)
async def test_change_of_a_node(change, is_queued, is_kept):
    node = Node()
    await node.units.change(node.tree, "kubelet", "restart")
    queued = []
    node.units._loop.add = queued.append
    node.handler(change(node))
    assert queued == ([Key("", "node-1")] if is_queued else [])
    assert bool(node.units._entries) is bool(node.units._written) is is_kept
    node.units._seen["node-1"] = node.clock.now()
    node.handler(Change(None, node.tree))
    assert queued[is_queued:] == [Key("", "node-1")]
    node.handler(Change(node.tree, None))
    assert not node.units._seen


async def test_failed_kubelet_is_started_every_ten_seconds_until_it_runs():
    node = Node(f"kubelet=failed@{SINCE}")
    right = node.machines.files[CONFIG]
    node.machines.files[CONFIG] = b"kind: X"
    assert await node.reconcile() == timedelta(seconds=10)
    assert (node.machines.refreshed, node.patches) == (["node-1"], [])
    node.machines.files[CONFIG] = right
    assert await node.reconcile() == timedelta(seconds=10)
    assert node.written == [None]


@pytest.mark.parametrize(
    ("fields", "stopped"),
    [({}, ""), ({}, "kubelet=stopped"), ({"exists": False}, "containerd=stopped"), ({"simulated": False}, "containerd=stopped")],
)  # fmt: skip
async def test_node_without_a_runtime_that_is_down_is_left_alone(fields, stopped):
    node = Node(stopped, **fields)
    node.units._seen["node-1"] = node.clock.now()
    node.clock.advance(600)
    assert await node.reconcile() is None
    assert node.patches == []
    assert bool(node.units._seen) is ("containerd" in stopped)


DOWN = "container runtime is down"
OLD = f"[{DOWN}, PLEG is not healthy: pleg was last seen active 3m20s ago; threshold is 3m0s]"
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
NOT_READY = {**READY, "status": "False"}


@pytest.mark.parametrize(
    ("seconds", "ready", "message", "later", "changes"),
    [
        (20, READY, None, 10, False),
        (30, READY, DOWN, 150, True),
        (60, None, DOWN, 120, True),
        (60, {**NOT_READY, "message": DOWN}, None, 120, False),
        (60, {**NOT_READY, "message": OLD}, DOWN, 120, False),
        (200, {**NOT_READY, "message": DOWN}, OLD, None, False),
        (200, {**NOT_READY, "message": OLD}, None, None, False),
        (200, {**READY, "message": OLD}, OLD, None, True),
    ],
)
@pytest.mark.parametrize("has_time", [True, False])
async def test_node_whose_container_runtime_is_down_is_not_ready(
    seconds, ready, message, later, changes, has_time
):
    node = Node(ready=ready)
    began = node.clock.now()
    node.annotations[STOPPED_UNITS] = f"containerd=stopped@{format_micro_time(began) if has_time else ''}"
    if not has_time:
        await node.reconcile()
    node.clock.advance(seconds)
    assert await node.reconcile() == (None if later is None else timedelta(seconds=later))
    now = format_time(node.clock.now())
    if message is None:
        assert node.patches == []
        return
    [(body, options)] = node.patches
    [condition] = body["status"]["conditions"]
    assert options == {"subresource": "status", "kind": "strategic"}
    changed = now if changes else READY["lastTransitionTime"]
    assert condition == {
        "type": "Ready",
        "status": "False",
        "reason": "KubeletNotReady",
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": changed,
    }


@pytest.mark.parametrize("error", [NotFound("x"), Conflict("x")])
async def test_node_that_changes_meanwhile_is_not_reported(error):
    node = Node("containerd=stopped")
    await node.reconcile()
    node.clock.advance(60)
    node.error = error
    assert await node.reconcile() is None
