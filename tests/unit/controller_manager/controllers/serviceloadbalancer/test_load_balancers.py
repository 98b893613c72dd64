"""Services of type LoadBalancer with a real server: addresses, finalizers, events."""

import pytest

from mockube.controller_manager.components import SIMULATED_NODES
from mockube.controller_manager.config.settings import Networks
from mockube.controller_manager.controllers.serviceloadbalancer.controller import SERVICE_LOAD_BALANCERS
from tests.support.controllers.simulated import MERGE, simulated_cluster

SERVICES = "/api/v1/namespaces/default/services"
FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
RUNNABLES = (SIMULATED_NODES, SERVICE_LOAD_BALANCERS)


@pytest.fixture
async def cluster():
    async with simulated_cluster(runnables=RUNNABLES, nodes=1) as cluster:
        yield cluster


async def service(cluster, name="web", **spec):
    body = {"metadata": {"name": name}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], **spec}}
    answer = await cluster.server.post(SERVICES, body)
    assert answer.status == 201, answer.data
    await cluster.manager.settle()
    return await cluster.get(f"{SERVICES}/{name}")


async def service_events(cluster):
    events = (await cluster.get("/api/v1/namespaces/default/events"))["items"]
    of_services = [event for event in events if event["involvedObject"]["kind"] == "Service"]
    assert {event["source"]["component"] for event in of_services} == {"service-controller"}
    return [(event["reason"], event["message"]) for event in of_services]


async def test_service_has_load_balancer_address_until_deleted(cluster):
    created = await service(cluster)
    assert created["status"]["loadBalancer"] == {"ingress": [{"ip": "198.18.0.1", "ipMode": "VIP"}]}
    assert created["metadata"]["finalizers"] == [FINALIZER]
    assert cluster.writes("/services/") == [("PATCH", f"{SERVICES}/web/status")] * 2
    await cluster.server.delete(f"{SERVICES}/web")
    await cluster.manager.settle()
    assert await cluster.get(f"{SERVICES}/web") is None
    assert await service_events(cluster) == [
        ("EnsuringLoadBalancer", "Ensuring load balancer"),
        ("EnsuredLoadBalancer", "Ensured load balancer"),
        ("DeletingLoadBalancer", "Deleting load balancer"),
        ("DeletedLoadBalancer", "Deleted load balancer"),
    ]


async def test_type_change_releases_load_balancer_address(cluster):
    await service(cluster)
    await cluster.server.patch(f"{SERVICES}/web", {"spec": {"type": "ClusterIP"}}, **MERGE)
    await cluster.manager.settle()
    left = await cluster.get(f"{SERVICES}/web")
    assert left["status"] == {"loadBalancer": {}}
    assert "finalizers" not in left["metadata"]


async def test_service_of_other_class_is_ignored(cluster):
    created = await service(cluster, loadBalancerClass="a.b/c")
    assert created["status"] == {"loadBalancer": {}}
    assert "finalizers" not in created["metadata"]


async def test_address_of_other_service_is_not_reused(cluster):
    await service(cluster, loadBalancerIP="198.18.0.9")
    second = await service(cluster, "other", loadBalancerIP="198.18.0.9")
    assert second["status"] == {"loadBalancer": {}}
    problem = "failed to ensure load balancer: 198.18.0.9 is the address of another service"
    assert ("SyncLoadBalancerFailed", f"Error syncing load balancer: {problem}") in await service_events(
        cluster
    )
    await cluster.server.delete(f"{SERVICES}/web")
    await cluster.manager.step(10)
    again = await cluster.get(f"{SERVICES}/other")
    assert again["status"]["loadBalancer"]["ingress"][0]["ip"] == "198.18.0.9"


async def test_address_range_is_a_flag():
    networks = Networks(load_balancer_cidr="192.0.2.0/24")
    async with simulated_cluster(runnables=RUNNABLES, nodes=1, networks=networks) as cluster:
        assert (await service(cluster))["status"]["loadBalancer"]["ingress"][0]["ip"] == "192.0.2.1"
