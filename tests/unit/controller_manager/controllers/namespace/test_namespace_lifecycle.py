"""The life cycle of a namespace, from its default account to its deletion, by a manager with a real server."""

import pytest

from mockube.component_base.clock import ClusterClock, SteppedClock
from mockube.controller_manager.controllers.namespace.controller import NAMESPACE as LIFECYCLE
from mockube.controller_manager.controllers.rootca.controller import root_ca
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.controllers.running_manager import running_cluster

NAMESPACE = "/api/v1/namespaces/web"
ACCOUNT = f"{NAMESPACE}/serviceaccounts/default"
BUNDLE = f"{NAMESPACE}/configmaps/kube-root-ca.crt"


@pytest.fixture
async def cluster():
    clock = SteppedClock()
    controllers, runnables = [SERVICE_ACCOUNT, root_ca("PEM")], [LIFECYCLE]
    async with running_cluster(clock=clock, controllers=controllers, runnables=runnables) as (
        server,
        manager,
    ):
        assert (await server.post("/api/v1/namespaces", {"metadata": {"name": "web"}})).status == 201
        await manager.settle()
        yield server, manager


async def status_of(server, path):
    return (await server.get(path)).status


async def condition(server, name):
    conditions = (await server.get(NAMESPACE)).body["status"]["conditions"]
    return next((one["status"], one["message"]) for one in conditions if one["type"] == name)


async def test_new_namespace_gets_account_and_root_ca(cluster):
    server, _ = cluster
    assert await status_of(server, ACCOUNT) == 200
    assert (await server.get(BUNDLE)).body["data"] == {"ca.crt": "PEM"}


async def test_default_account_and_root_ca_are_recreated(cluster):
    server, manager = cluster
    await server.delete(ACCOUNT)
    await server.delete(BUNDLE)
    await server.delete("/api/v1/namespaces/default/configmaps/kube-root-ca.crt")
    await manager.settle()
    assert await status_of(server, ACCOUNT) == await status_of(server, BUNDLE) == 200


async def test_changed_root_ca_is_restored(cluster):
    server, manager = cluster
    await server.patch(BUNDLE, {"data": {"ca.crt": "other"}})
    await manager.settle()
    assert (await server.get(BUNDLE)).body["data"] == {"ca.crt": "PEM"}


async def test_namespace_is_deleted_with_its_content(cluster):
    server, manager = cluster
    await server.post(f"{NAMESPACE}/secrets", {"metadata": {"name": "a"}})
    await server.delete(NAMESPACE)
    await manager.step(1)
    assert await status_of(server, NAMESPACE) == 404
    assert await status_of(server, "/api/v1/namespaces/default") == 200
    await server.post("/api/v1/namespaces", {"metadata": {"name": "web"}})
    assert (await server.get(f"{NAMESPACE}/secrets")).body["items"] == []


async def test_blocked_namespace_deletion_has_conditions(cluster):
    server, manager = cluster
    metadata = {"name": "held", "finalizers": ["example.com/held"]}
    await server.post(f"{NAMESPACE}/configmaps", {"metadata": metadata})
    await server.delete(NAMESPACE)
    await manager.step(1)
    assert await condition(server, "NamespaceContentRemaining") == (
        "True",
        "Some resources are remaining: configmaps. has 1 resource instances",
    )
    assert await condition(server, "NamespaceFinalizersRemaining") == (
        "True",
        "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances",
    )
    await server.patch(f"{NAMESPACE}/configmaps/held", {"metadata": {"finalizers": None}})
    await manager.step(10)
    assert await status_of(server, NAMESPACE) == 404


async def test_pods_are_deleted_before_other_content(cluster):
    server, manager = cluster
    pod = {
        "metadata": {"name": "a", "finalizers": ["example.com/held"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    assert (await server.post(f"{NAMESPACE}/pods", pod)).status == 201
    await server.post(f"{NAMESPACE}/secrets", {"metadata": {"name": "a"}})
    await server.delete(NAMESPACE)
    await manager.step(1)
    assert await status_of(server, f"{NAMESPACE}/secrets/a") == 200
    await server.patch(f"{NAMESPACE}/pods/a", {"metadata": {"finalizers": None}})
    await manager.step(20)
    assert await status_of(server, NAMESPACE) == 404


async def test_foreign_finalizer_keeps_empty_namespace(cluster):
    server, manager = cluster
    namespace = {"metadata": {"name": "kept"}, "spec": {"finalizers": ["example.com/keeper"]}}
    await server.post("/api/v1/namespaces", namespace)
    await server.delete("/api/v1/namespaces/kept")
    await manager.step(5)
    body = (await server.get("/api/v1/namespaces/kept")).body
    assert body["spec"]["finalizers"] == ["example.com/keeper"]
    assert body["status"]["phase"] == "Terminating"


async def test_deleted_namespace_disappears_while_the_clock_is_paused():
    real = SteppedClock()
    clock = ClusterClock(real)
    clock.pause()
    async with running_cluster(clock=clock, controllers=[], runnables=[LIFECYCLE]) as (server, manager):
        await server.post("/api/v1/namespaces", {"metadata": {"name": "web"}})
        await server.delete(NAMESPACE)
        await manager.settle()
        assert await status_of(server, NAMESPACE) == 200
        real.advance(1)
        await manager.settle()
        assert await status_of(server, NAMESPACE) == 404
