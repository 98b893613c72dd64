"""Quota usage counted by a manager with a real server."""

from datetime import timedelta

import pytest

from mockube.component_base.clock import ClusterClock, SteppedClock
from mockube.controller_manager.controllers.resourcequota.controller import (
    RESOURCE_QUOTA,
    USAGE_DECREASE_DELAY,
)
from tests.support.controllers.running_manager import running_cluster
from tests.support.server.control import PATH, control_object
from tests.support.server.definitions import WIDGETS, define, definition

CORE = "/api/v1/namespaces/default"
QUOTA = f"{CORE}/resourcequotas/q"


@pytest.fixture
async def cluster():
    clock = SteppedClock()
    async with running_cluster(clock=clock, controllers=[], runnables=[RESOURCE_QUOTA]) as (server, manager):
        await server.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield server, manager, clock


async def settle(cluster):
    """Wait until all usage is counted; a decrease is written only after a short delay."""
    _, manager, clock = cluster
    for _ in range(3):
        await manager.settle()
        clock.advance(USAGE_DECREASE_DELAY.total_seconds())
    await manager.settle()


async def limit(cluster, **hard):
    server, _, _ = cluster
    spec = {"hard": {name.replace("__", "/").replace("_", "."): limit for name, limit in hard.items()}}
    answer = await server.post(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": spec})
    assert answer.status == 201, answer.body
    await settle(cluster)


async def quota_usage(server):
    return (await server.get(QUOTA)).body["status"]["used"]


def object_with_name(name, **fields):
    return {"metadata": {"name": name}} | fields


def pod(name="p", cpu="1"):
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    return object_with_name(name, spec={"containers": [{"name": "c", "image": "x", "resources": resources}]})


@pytest.mark.thorough
async def test_existing_objects_are_counted(cluster):
    server, _, _ = cluster
    await server.post(f"{CORE}/pods", pod())
    await server.post(f"{CORE}/configmaps", object_with_name("a"))
    await limit(cluster, pods="5", requests_cpu="5", limits_memory="5", count__configmaps="5", secrets="5")
    status = (await server.get(QUOTA)).body["status"]
    assert status["used"] == {
        "count/configmaps": "1", "limits.memory": "0", "pods": "1", "requests.cpu": "1", "secrets": "0",
    }  # fmt: skip
    assert status["hard"] == dict.fromkeys(status["used"], "5")


async def test_deletion_frees_quota(cluster):
    server, _, _ = cluster
    await limit(cluster, configmaps="1")
    await server.post(f"{CORE}/configmaps", object_with_name("a"))
    assert (await server.post(f"{CORE}/configmaps", object_with_name("b"))).status == 403
    await server.delete(f"{CORE}/configmaps/a")
    await settle(cluster)
    assert await quota_usage(server) == {"configmaps": "0"}
    assert (await server.post(f"{CORE}/configmaps", object_with_name("b"))).status == 201


@pytest.mark.thorough
async def test_finished_pod_uses_object_count_only(cluster):
    server, _, _ = cluster
    await limit(cluster, pods="5", requests_cpu="5", count__pods="5")
    await server.post(f"{CORE}/pods", pod())
    assert await quota_usage(server) == {"count/pods": "1", "pods": "1", "requests.cpu": "1"}
    await server.patch(f"{CORE}/pods/p/status", {"status": {"phase": "Succeeded"}})
    await settle(cluster)
    assert await quota_usage(server) == {"count/pods": "1", "pods": "0", "requests.cpu": "0"}


@pytest.mark.thorough
async def test_service_type_change_frees_quota(cluster):
    server, _, _ = cluster
    await limit(cluster, services_loadbalancers="1", services_nodeports="5")
    service = object_with_name("s", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})
    await server.post(f"{CORE}/services", service)
    assert await quota_usage(server) == {"services.loadbalancers": "1", "services.nodeports": "1"}
    await server.patch(f"{CORE}/services/s", {"spec": {"type": "ClusterIP"}})
    await settle(cluster)
    assert await quota_usage(server) == {"services.loadbalancers": "0", "services.nodeports": "0"}


@pytest.mark.thorough
async def test_changed_limit_is_counted_at_once(cluster):
    server, _, _ = cluster
    await limit(cluster, configmaps="1")
    await server.post(f"{CORE}/configmaps", object_with_name("a"))
    await server.patch(QUOTA, {"spec": {"hard": {"configmaps": "3", "secrets": "2"}}})
    await settle(cluster)
    assert (await server.get(QUOTA)).body["status"] == {
        "hard": {"configmaps": "3", "secrets": "2"},
        "used": {"configmaps": "1", "secrets": "0"},
    }


@pytest.mark.thorough
async def test_quota_is_recounted_periodically(cluster):
    server, _, clock = cluster
    await limit(cluster, configmaps="3")
    await server.patch(f"{QUOTA}/status", {"status": {"used": {"configmaps": "3"}}})
    await settle(cluster)
    assert await quota_usage(server) == {"configmaps": "3"}
    clock.advance(timedelta(minutes=5).total_seconds())
    await settle(cluster)
    assert await quota_usage(server) == {"configmaps": "0"}


async def test_objects_of_new_kind_are_counted(cluster):
    server, _, _ = cluster
    await limit(cluster, count__widgets_example_com="3")
    await define(server, definition())
    await settle(cluster)
    widget = {"apiVersion": "example.com/v1", "kind": "Widget"}
    await server.post(WIDGETS, widget | object_with_name("a"))
    await settle(cluster)
    assert await quota_usage(server) == {"count/widgets.example.com": "1"}


async def test_recent_charge_is_not_lost(cluster):
    server, manager, clock = cluster
    await limit(cluster, configmaps="5", secrets="5")
    status = {"used": {"configmaps": "3", "secrets": "0"}}
    await server.patch(f"{QUOTA}/status", {"status": status})
    await server.patch(QUOTA, {"spec": {"hard": {"configmaps": "6"}}})
    await manager.settle()
    assert await quota_usage(server) == status["used"]
    clock.advance(USAGE_DECREASE_DELAY.total_seconds())
    await manager.settle()
    assert await quota_usage(server) == {"configmaps": "0", "secrets": "0"}


@pytest.mark.thorough
async def test_deletion_frees_quota_while_the_clock_is_paused():
    real = SteppedClock()
    clock = ClusterClock(real)
    clock.pause()
    async with running_cluster(clock=clock, controllers=[], runnables=[RESOURCE_QUOTA]) as (server, manager):
        cluster = server, manager, real
        await limit(cluster, configmaps="1")
        await server.post(f"{CORE}/configmaps", object_with_name("a"))
        await settle(cluster)
        assert await quota_usage(server) == {"configmaps": "1"}
        await server.delete(f"{CORE}/configmaps/a")
        await settle(cluster)
        assert await quota_usage(server) == {"configmaps": "0"}


async def test_quota_without_counted_usage_refuses_what_it_limits(cluster):
    """While the resources are not discovered, nothing is counted, and no pod may pass the quota."""
    server, manager, clock = cluster
    faults = f"{PATH}/faults"
    fault = {"match": {"path": "/apis"}, "refuse": {"status": 503}}
    answer = await server.post(faults, control_object("Fault", "no-discovery", spec=fault))
    assert answer.status == 201, answer.body
    spec = {"hard": {"limits.cpu": "1"}}
    await server.post(f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": spec})
    await manager.settle()
    unlimited = object_with_name("unlimited", spec={"containers": [{"name": "c", "image": "x"}]})
    problems = [(await server.post(f"{CORE}/pods", body)).body["message"] for body in (unlimited, pod())]
    assert [problem.partition("is forbidden: ")[2] for problem in problems] == [
        "failed quota: q: must specify limits.cpu for: c",
        "status unknown for quota: q, resources: limits.cpu",
    ]
    await server.delete(f"{faults}/no-discovery")
    clock.advance(60)
    await settle(cluster)
    assert (await server.post(f"{CORE}/pods", pod())).status == 201
    assert await quota_usage(server) == {"limits.cpu": "1"}
