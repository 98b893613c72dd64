"""Which Services are published, and which connections end with a pod."""

import asyncio
import resource
import socket

import pytest
from msgspec.structs import replace

from mockube.client import kinds
from mockube.network.services import RouteTarget
from mockube.network.view import Peer, peer_of
from mockube.publisher import limits
from mockube.publisher.disabled import DisabledPublisher
from mockube.publisher.publisher import Publisher
from tests.support.event_loop import yield_to_loop
from tests.support.publishing import ADDRESS, VIEWED, PublisherParts
from tests.unit.publisher.test_bindings import service


class Cluster(PublisherParts):
    def __init__(self):
        super().__init__()
        self.publisher = Publisher(self.context)

    @property
    def ports(self):
        return sorted(self.publisher._listeners._listeners)

    async def start(self):
        await self.sync(*VIEWED, kinds.CONFIG_MAPS)
        self._task = asyncio.create_task(self.publisher.run())
        await self.settle()

    async def settle(self):
        await yield_to_loop(300)

    async def end(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def record(self):
        (found,) = self.informers.of(kinds.CONFIG_MAPS).lister.all()
        return found["data"]


@pytest.fixture
async def cluster():
    made = Cluster()
    await made.start()
    yield made
    await made.end()


def node_port(name="web", **fields):
    return service("NodePort", {"port": 80, "nodePort": 0, **fields}, name=name)


def balanced(name="web"):
    return service("LoadBalancer", {"port": 80}, ip="127.0.0.1", name=name)


async def test_port_of_a_service_is_open_as_long_as_the_service_has_it(cluster):
    tree = service("NodePort", {"port": 80, "nodePort": 1})
    cluster.put(kinds.SERVICES, tree, service("ClusterIP", name="inner"))
    await cluster.settle()
    assert cluster.ports == ["default.web.80.node-port"]
    cluster.put(kinds.SERVICES, service("NodePort", {"port": 90, "nodePort": 1}))
    await cluster.settle()
    assert cluster.ports == ["default.web.90.node-port"]
    cluster.remove(kinds.SERVICES, tree)
    await cluster.settle()
    assert cluster.ports == []


async def test_services_that_exist_before_the_publisher_runs_are_published():
    cluster = Cluster()
    cluster.put(kinds.SERVICES, service("NodePort", {"port": 80, "nodePort": 1}))
    await cluster.start()
    assert cluster.ports == ["default.web.80.node-port"]
    await cluster.end()
    assert cluster.ports == []


def proxy_pod(phase="Running"):
    containers = [{"name": "c", "image": "registry.k8s.io/kube-proxy:v1"}]
    spec = {"hostNetwork": True, "nodeName": "a", "containers": containers}
    return {
        "metadata": {"name": "proxy", "namespace": "kube-system", "uid": "proxy"},
        "spec": spec,
        "status": {"phase": phase},
    }


async def test_service_that_comes_after_kube_proxy_has_gone_is_not_published(cluster):
    cluster.put(kinds.PODS, proxy_pod())
    cluster.remove(kinds.PODS, proxy_pod())
    cluster.put(kinds.SERVICES, service("NodePort", {"port": 80, "nodePort": 1}))
    await cluster.settle()
    assert cluster.ports == []
    cluster.clock.advance(1)
    await cluster.settle()
    assert "kube-proxy runs on no node" in cluster.record["default.web.80.node-port"]
    cluster.put(kinds.PODS, proxy_pod())
    await cluster.settle()
    assert cluster.ports == ["default.web.80.node-port"]


def pod(uid="u", restarts=0, phase="Running"):
    return {
        "metadata": {"name": "web-1", "namespace": "default", "uid": uid},
        "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "nginx"}]},
        "status": {"phase": phase, "containerStatuses": [{"restartCount": restarts}]},
    }


@pytest.mark.parametrize(
    ("change", "breaks"),
    [
        (pod(), False),
        (pod(restarts=1), True),
        (pod(phase="Failed"), True),
        (pod(uid="another"), True),
        (None, True),
    ],
)
async def test_connections_break_when_their_pod_ends_or_starts_anew(cluster, change, breaks):
    broken = []
    connections = cluster.publisher._listeners.connections
    connections._by_pod["u"] = set()
    connections.break_pod = broken.append
    cluster.put(kinds.PODS, pod())
    if change is None:
        cluster.remove(kinds.PODS, pod())
    else:
        cluster.put(kinds.PODS, change)
    assert broken == (["u"] if breaks else [])


async def test_pod_without_connections_breaks_none(cluster):
    cluster.publisher._listeners.connections.break_pod = pytest.fail
    cluster.put(kinds.PODS, pod())
    cluster.remove(kinds.PODS, pod())


async def test_pods_of_which_nothing_is_known_have_not_started_anew(cluster):
    broken = []
    cluster.publisher._listeners.connections._by_pod["u"] = set()
    cluster.publisher._listeners.connections.break_pod = broken.append
    bare = pod()
    bare["status"] = {}
    cluster.put(kinds.PODS, bare, {**bare, "status": {"containerStatuses": [{}]}})
    assert broken == []


async def test_port_that_cannot_be_had_is_told_once(cluster):
    with socket.create_server((ADDRESS, 0)) as taken:
        port = taken.getsockname()[1]
        tree = service("NodePort", {"port": 80, "nodePort": port})
        for _ in range(2):
            cluster.put(kinds.SERVICES, tree)
            await cluster.settle()
    ((name, kind, reason, text),) = cluster.events.recorded
    assert (name, kind, reason) == ("web", "Warning", "PublishedPortReplaced")
    begin = (
        f"port {port} of {ADDRESS} is taken by another program: node port {port} is published at {ADDRESS}:"
    )
    assert text.startswith(begin)
    assert text.endswith(" in its place")
    cluster.clock.advance(1)
    await cluster.settle()
    replaced = cluster.record["default.web.80.node-port"]
    assert begin + replaced.rpartition(":")[2] + " in its place" == text


async def test_port_for_which_there_is_no_socket_is_told_once(cluster, monkeypatch):
    monkeypatch.setattr(limits, "MAX_LISTENERS", 0)
    for _ in range(2):
        cluster.put(kinds.SERVICES, service("NodePort", {"port": 80, "nodePort": 1}))
        await cluster.settle()
    text = "node port 1 is not published on this machine: 0 ports are published already"
    assert cluster.events.recorded == [("web", "Warning", "PublishingFailed", text)]
    cluster.clock.advance(1)
    await cluster.settle()
    assert cluster.record["default.web.80.node-port"] == "none: 0 ports are published already"


async def test_port_that_is_the_usual_one_is_not_told(cluster):
    with socket.create_server((ADDRESS, 0)) as free:
        port = free.getsockname()[1]
    cluster.put(kinds.SERVICES, service("NodePort", {"port": 80, "nodePort": port}))
    await cluster.settle()
    cluster.clock.advance(1)
    await cluster.settle()
    assert (cluster.events.recorded, sorted(cluster.record)) == ([], ["address", "load-balancers"])


async def test_removed_port_is_forgotten(cluster):
    with socket.create_server((ADDRESS, 0)) as taken:
        tree = service("NodePort", {"port": 80, "nodePort": taken.getsockname()[1]})
        cluster.put(kinds.SERVICES, tree)
        await cluster.settle()
    cluster.remove(kinds.SERVICES, tree)
    await cluster.settle()
    cluster.clock.advance(1)
    await cluster.settle()
    assert (sorted(cluster.record), cluster.publisher._published) == (["address", "load-balancers"], {})


async def test_nothing_is_published_before_all_is_known():
    cluster = Cluster()
    cluster.put(kinds.SERVICES, service("NodePort", {"port": 80, "nodePort": 1}))
    needed = [*VIEWED, kinds.CONFIG_MAPS]
    task = asyncio.create_task(cluster.publisher.run())
    for each in needed:
        await cluster.settle()
        assert (cluster.ports, cluster.client.writes) == ([], [])
        await cluster.sync(each)
    await cluster.settle()
    assert cluster.ports == ["default.web.80.node-port"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_idle_connections_end_while_the_publisher_runs(cluster):
    connections = cluster.publisher._listeners.connections
    idle = Idle()
    connections.add(idle, idle.serve)
    await cluster.settle()
    connections._clock.advance(limits.IDLE_SECONDS + limits.SWEEP_SECONDS)
    await cluster.settle()
    assert idle.is_reset


class Idle:
    """A connection of which nothing comes."""

    address, used_at, is_reset = ADDRESS, -1.0, False

    async def serve(self, _):
        await asyncio.Event().wait()

    def reset(self):
        self.is_reset = True

    async def close(self):
        pass


def controller_pod(image="registry.k8s.io/ingress-nginx/controller:v1.15.0"):
    containers = [{"name": "c", "image": image, "ports": [{"containerPort": 80}, {"containerPort": 443}]}]
    tree = pod()
    tree["spec"]["containers"] = containers
    return tree


def target(tree, port=80):
    peer = Peer(address="10.0.0.1") if tree is None else peer_of(tree)
    return RouteTarget(peer=peer, port=port, pod=tree)


async def test_pod_of_a_controller_of_ingresses_is_served_by_the_proxy(cluster):
    served = []

    async def serve_pod(connection, **options):
        served.append((connection, options["controller"], options["port"], options["uses_tls"]))

    cluster.publisher._ingresses.serve_pod = serve_pod
    for port in (80, 443):
        await cluster.publisher._find_proxy(target(controller_pod(), port))("connection")
    assert served == [
        ("connection", "k8s.io/ingress-nginx", 80, False),
        ("connection", "k8s.io/ingress-nginx", 443, True),
    ]
    find = cluster.publisher._find_proxy
    assert find(target(controller_pod("nginx"))) is None
    assert find(target(controller_pod(), 9)) is None
    assert find(target(None)) is None
    cluster.listening["web-1", 80] = "a process"
    assert find(target(controller_pod())) is None


async def test_disabled_publisher_deletes_what_an_earlier_run_has_written():
    parts = PublisherParts()
    parts.context = replace(parts.context, settings=replace(parts.context.settings, is_enabled=False))
    metadata = {"name": "mockube-published-ports", "namespace": "kube-system"}
    parts.put(kinds.CONFIG_MAPS, {"metadata": metadata, "data": {"a": "b"}})
    task = asyncio.create_task(DisabledPublisher(parts.context).run())
    await parts.settle()
    assert parts.client.writes == []
    await parts.sync(kinds.CONFIG_MAPS)
    await parts.settle()
    assert parts.client.writes == [("delete", "configmaps", "mockube-published-ports")]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_publisher_may_open_as_many_files_as_the_system_allows():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    cluster = Cluster()
    await cluster.start()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
    await cluster.end()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
