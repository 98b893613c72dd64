"""Which Services are published, and which connections end with a pod."""

import asyncio

import pytest

from mockube.client import kinds
from mockube.publisher.publisher import Publisher
from tests.support.event_loop import yield_to_loop
from tests.support.publishing import VIEWED, PublisherParts
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
