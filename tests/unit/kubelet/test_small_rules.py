"""Addresses, preemption, health of gRPC servers, memory of nodes, and kwok's objects: each rule with both of its answers."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import NotFound
from mockube.client.cache.store import Change
from mockube.client.kinds import NODES, PODS
from mockube.client.podview import PodView
from mockube.container_runtime.kwok.kinds import KwokKind
from mockube.container_runtime.runtime import NotPermitted
from mockube.kubelet.addresses import NodeAddresses, PodAddresses, number_of_address, pod_networks
from mockube.kubelet.kwok_objects import DISCOVERY_SECONDS, KwokObjects
from mockube.kubelet.memory_pressure import MemoryPressure
from mockube.kubelet.pod_lifecycle.preemption import is_critical, is_preemptable
from mockube.kubelet.probes.grpc_health import GrpcError, _status


@pytest.mark.parametrize(
    ("address", "number"),
    [
        ("172.18.0.7", 7),
        ("172.18.1.0", 256),
        ("172.18.0.256", 0),
        ("172.18.0.07", 0),
        ("172.18.x.7", 0),
        ("172.18.0.x", 0),
        ("172.18.7", 0),
        ("172.19.0.7", 0),
        ("0.7", 0),
        ("", 0),
    ],
)
def test_number_of_the_address_of_a_node(address, number):
    assert number_of_address(address) == number


def test_node_gets_the_address_of_its_number_unless_another_one_has_it():
    addresses = NodeAddresses(["172.18.0.2", "172.18.0.5", "10.0.0.1"], 3)
    assert [addresses.allocate(number) for number in (1, 2, None, None)] == [
        "",
        "172.18.0.4",
        "172.18.0.6",
        "172.18.0.7",
    ]


@pytest.mark.parametrize(
    ("cidr", "size", "first"),
    [
        ("10.0.0.0/29", 5, "10.0.0.2"),
        ("10.0.0.0/31", 0, "10.0.0.2"),
        ("fd00::/64", 65536, "fd00::2"),
        ("10.0.0.7/29", 5, "10.0.0.2"),
    ],
)
def test_addresses_of_a_pod_cidr(cidr, size, first):
    (network,) = pod_networks((cidr,))
    assert (network.size, network.address_at(0)) == (size, first)


def test_address_that_two_pods_have_is_used_until_its_first_pod_releases_it():
    (network,) = pod_networks(("10.0.0.0/30",))
    addresses = PodAddresses()
    addresses.record("a", "10.0.0.2")
    addresses.record("b", "10.0.0.2")
    addresses.release("b")
    assert "10.0.0.2" in addresses._uids
    addresses.release("a")
    addresses.release("a")
    assert [addresses.allocate("c", network), addresses.allocate("c", network)] == ["10.0.0.2", "10.0.0.2"]


CRITICAL = 2_000_000_000
MIRROR = {"kubernetes.io/config.mirror": "x"}


def pod(priority=None, annotations=()):
    spec = {} if priority is None else {"priority": priority}
    return {"metadata": {"annotations": dict(annotations)}, "spec": spec}


@pytest.mark.parametrize(
    ("preemptor", "other", "expected"),
    [
        (pod(CRITICAL), pod(), True),
        (pod(CRITICAL), pod(CRITICAL), False),
        (pod(CRITICAL + 1), pod(CRITICAL), True),
        (pod(annotations=MIRROR), pod(5), True),
        (pod(annotations=MIRROR), pod(CRITICAL), False),
        (pod(6), pod(5), True),
        (pod(5), pod(5), False),
        (pod(5), pod(), False),
        (pod(), pod(-1), False),
    ],
)
def test_pod_that_may_be_preempted(preemptor, other, expected):
    """As types.Preemptable of a kubelet."""
    assert is_preemptable(preemptor, other) is expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [(pod(), False), (pod(CRITICAL - 1), False), (pod(CRITICAL), True), (pod(annotations=MIRROR), True)],
)
def test_critical_pod(tree, expected):
    assert is_critical(tree) is expected


HEAD = b"\0\0\0\0\2"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (HEAD + b"\x08\0", "UNKNOWN"),
        (HEAD + b"\x08\1", "SERVING"),
        (HEAD + b"\x08\2", "NOT_SERVING"),
        (HEAD + b"\x08\3", "SERVICE_UNKNOWN"),
        (HEAD + b"\x08\4", "4"),
        (HEAD + b"\x10\1", "UNKNOWN"),
        (HEAD + b"\x08", "UNKNOWN"),
        (HEAD, "UNKNOWN"),
    ],
)
def test_health_in_the_response_of_a_grpc_server(body, status):
    assert _status(body) == status


def test_response_of_a_grpc_server_without_a_message_is_an_error():
    with pytest.raises(GrpcError, match="does not implement the health protocol"):
        _status(HEAD[:4])


# --- memory of nodes

MEBIBYTE = 1 << 20


class Nodes:
    """Nodes with pods whose programs use known amounts of memory."""

    def __init__(self, clock, metrics, memory="1000Mi"):
        self.pods, self.usage, self.watched = {}, {}, []
        tree = {"metadata": {"name": "a"}, "status": {"allocatable": {"memory": memory} if memory else {}}}
        listers = {
            PODS: SimpleNamespace(get=lambda *key: self.pods.get(key)),
            NODES: SimpleNamespace(get=lambda _, name: tree if name == "a" else None),
        }
        informers = SimpleNamespace(of=lambda resource: SimpleNamespace(lister=listers.get(resource)))
        predictions = SimpleNamespace(
            server_load=lambda container, _: self.load(container["server"]),
            program_of_run=lambda _pod, container, _script: lambda: self.program(container.get("uses")),
        )
        containers = SimpleNamespace(
            runtime=SimpleNamespace(
                container_stats=lambda tree, name: self.usage.get((tree["metadata"]["name"], name))
            ),
            predictions=predictions,
            image_table=SimpleNamespace(behavior_of=lambda container: container.get("server")),
        )
        recorder = SimpleNamespace(of=lambda _: None)
        context = SimpleNamespace(
            informers=informers, clock=clock, metrics=metrics, client=None, recorder=recorder
        )
        self.evicted = set()
        self.pressure = MemoryPressure(context, containers, self.evicted, lambda _: None)
        self.pressure.watch = self.watched.append
        self.node = tree

    @staticmethod
    def load(*sizes):
        return SimpleNamespace(memory=[SimpleNamespace(size=size * MEBIBYTE) for size in sizes])

    def program(self, uses):
        return None if uses is None else SimpleNamespace(load=self.load(*uses))

    def change(self, old, new):
        if new is not None:
            self.pods[new.key] = new
        self.pressure.on_pod_change(Change(old, new))


def view(name="p", *, uid="", phase="Running", on="a", **container):
    metadata = {"name": name, "namespace": "d", "uid": uid or f"uid-{name}", "resourceVersion": "1"}
    spec = {"nodeName": on, "containers": [{"name": "c", **container}]}
    return PodView.of({"metadata": metadata, "spec": spec, "status": {"phase": phase}})


@pytest.fixture
def nodes(clock, metrics):
    return Nodes(clock, metrics)


LARGE = {"command": ["x"], "uses": [950]}


@pytest.mark.parametrize(
    ("views", "watched"),
    [
        ([view(**LARGE)], ["a"]),
        ([view(command=["x"], uses=[100, 950, 10])], ["a"]),
        ([view(args=["x"], uses=[950])], ["a"]),
        ([view(uses=[950])], []),
        ([view(command=["x"])], []),
        ([view(command=["x"], uses=[900])], []),
        ([view(command=["x"], uses=[float("inf"), 5])], []),
        ([view(server=950)], ["a"]),
        ([view(server=500, command=["x"], uses=[450])], ["a"]),
        ([view(phase="Pending", **LARGE)], []),
        ([view(phase="Succeeded", **LARGE)], []),
        ([view(on="", **LARGE)], []),
        ([view("p", command=["x"], uses=[500]), view("q", command=["x"], uses=[500])], ["a"]),
        ([view("p", command=["x"], uses=[500]), view("p", command=["x"], uses=[500])], []),
    ],
    ids=[
        "command",
        "the most of a command",
        "arguments",
        "no command",
        "unknown command",
        "room is left",
        "all of the memory",
        "server",
        "server and command",
        "not started",
        "ended",
        "no node",
        "two pods",
        "one pod twice",
    ],
)
def test_node_is_watched_if_its_pods_may_use_all_memory(nodes, views, watched):
    for each in views:
        nodes.change(None, each)
    assert nodes.watched == watched


@pytest.mark.parametrize(
    ("new", "sums"),
    [
        (None, 0),
        (view(phase="Failed", **LARGE), 0),
        (view(uid="other", command=["x"], uses=[5]), 5),
        (view(**LARGE), 950),
    ],
    ids=["deleted", "ended", "created again", "changed"],
)
def test_memory_of_a_pod_that_has_gone_is_free(nodes, new, sums):
    nodes.change(None, view(**LARGE))
    nodes.change(view(**LARGE), new)
    assert nodes.pressure._sums["a"] == sums * MEBIBYTE


def test_memory_of_a_node_that_has_gone_is_forgotten(nodes):
    nodes.change(None, view(**LARGE))
    nodes.pressure.forget_node("a")
    assert "a" not in nodes.pressure._sums
    assert "a" not in nodes.pressure._bounds


def test_node_that_says_nothing_of_its_memory_has_much(clock, metrics):
    nodes = Nodes(clock, metrics, memory="")
    nodes.change(None, view(**LARGE))
    assert nodes.watched == []
    assert nodes.pressure._observe(nodes.node).available == 1 << 62


def test_memory_that_is_available_is_what_pods_leave(nodes):
    pods = [view(name, **LARGE) for name in ("uses", "evicted", "gone", "unmeasured")]
    for each in pods:
        nodes.change(None, each)
    nodes.change(None, view("idle"))
    nodes.usage = {
        (name, "c"): SimpleNamespace(memory=100 * MEBIBYTE) for name in ("uses", "evicted", "gone", "idle")
    }
    nodes.evicted.add("uid-evicted")
    nodes.pods[pods[2].key] = view("gone", uid="other")
    seen = nodes.pressure._observe(nodes.node)
    assert seen.available == 900 * MEBIBYTE
    assert [(each.pod["metadata"]["name"], each.used) for each in seen.pods] == [
        ("uses", {"c": 100 * MEBIBYTE}),
        ("unmeasured", {}),
    ]


# --- kwok's objects

OWN = {
    "kind": "Logs",
    "metadata": {"name": "web"},
    "spec": {"logs": [{"containers": ["c"], "logsFile": "own"}]},
}


def cluster_logs(name, *names):
    entries = [{"logsFile": name}]
    return {"metadata": {"name": name}, "spec": {"selector": {"matchNames": [*names]}, "logs": entries}}


class Kwok:
    """A server that has some of kwok's kinds and objects."""

    def __init__(self, *kinds, own=None, cluster=()):
        self.documents = {
            "": {"resources": [{"name": each} for each in kinds]},
            "/namespaces/d/logs/web": own,
            "/clusterlogs": {"items": [*cluster]},
        }
        self.paths = []

    async def raw(self, _, path):
        path = path.removeprefix("/apis/kwok.x-k8s.io/v1alpha1")
        self.paths.append(path)
        if self.documents.get(path) is None:
            raise NotFound(path)
        return self.documents[path]


WEB = {"metadata": {"name": "web", "namespace": "d"}, "spec": {"containers": [{"name": "c"}]}}
GENERAL = [cluster_logs("z", "web"), cluster_logs("b", "web"), cluster_logs("a", "other")]


@pytest.mark.parametrize(
    ("kinds", "own", "container", "file"),
    [
        (("logs", "clusterlogs"), OWN, "c", "own"),
        (("logs", "clusterlogs"), OWN, "d", "b"),
        (("logs", "clusterlogs"), None, "c", "b"),
        (("logs",), OWN, "c", "own"),
        (("logs",), OWN, "d", None),
        (("clusterlogs",), OWN, "c", "b"),
        ((), OWN, "c", None),
    ],
)
async def test_entry_of_a_container(clock, kinds, own, container, file):
    objects = KwokObjects(Kwok(*kinds, own=own, cluster=GENERAL), clock, allowed=True)
    entry = await objects.entry(KwokKind.LOGS, WEB, container)
    assert (entry and entry["logsFile"]) == file


async def test_entry_needs_the_flag_of_the_manager(clock):
    objects = KwokObjects(Kwok("logs", own=OWN), clock, allowed=False)
    with pytest.raises(NotPermitted, match=r"^Logs 'web' uses files, .* which needs --allow-host-access$"):
        await objects.entry(KwokKind.LOGS, WEB, "c")
    assert await objects.entry(KwokKind.LOGS, WEB, "d") is None


async def test_objects_of_a_kind_are_sorted_and_the_kinds_are_kept_for_some_time(clock):
    server = Kwok("clusterlogs", cluster=GENERAL)
    objects = KwokObjects(server, clock, allowed=True)
    assert [each["metadata"]["name"] for each in await objects.list("clusterlogs")] == ["a", "b", "z"]
    assert await objects.list("logs") == ()
    assert server.paths == ["", "/clusterlogs"]
    clock.advance(DISCOVERY_SECONDS)
    await objects.list("logs")
    assert server.paths[2:] == [""]


PROGRAM = "kube-scheduler"


def static_pod(
    name=f"{PROGRAM}-control-plane",
    namespace="kube-system",
    on="control-plane",
    annotations=MIRROR,
    **container,
):
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"metadata": metadata, "spec": {"nodeName": on, "containers": [{"name": PROGRAM, **container}]}}


@pytest.mark.parametrize(
    ("tree", "is_program"),
    [
        (static_pod(), True),
        (static_pod(annotations={}), False),
        (static_pod(namespace="d"), False),
        (static_pod(on="node-1"), False),
        (static_pod(name="x"), False),
        (static_pod(command=[PROGRAM, "--unknown-flag=x"]), False),
    ],
    ids=["program", "no mirror", "other namespace", "other node", "other name", "wrong flags"],
)
async def test_log_of_a_program_is_that_of_its_static_pod(clock, tree, is_program):
    objects = KwokObjects(Kwok(), clock, allowed=False, logs={PROGRAM: "/log"})
    entries = [
        await objects.entry(kind, tree, PROGRAM) for kind in (KwokKind.LOGS, KwokKind.ATTACH, KwokKind.EXEC)
    ]
    assert entries == [*([{"logsFile": "/log", "follow": True}] * 2 if is_program else [None] * 2), None]
