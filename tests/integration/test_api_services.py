"""Services and their unique addresses and ports, over HTTP, with two servers on one store."""

import asyncio
import contextlib
from ipaddress import ip_address, ip_network

import pytest

from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.store import MemoryStore
from tests.support.server import apiserver

SERVICES = "/api/v1/namespaces/default/services"
DEFAULT = "10.0.0.0/16"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def addresses(client):
    listed = (await client.get(ADDRESSES)).body["items"]
    return {item["metadata"]["name"]: item["spec"]["parentRef"]["name"] for item in listed}


async def test_service_keeps_cluster_ip_until_deleted(client):
    created = (await client.post(SERVICES, service("a"))).body
    address = created["spec"]["clusterIP"]
    assert created["spec"]["clusterIPs"] == [address]
    assert await addresses(client) == {address: "a"}
    deleted = await client.delete(f"{SERVICES}/a")
    assert deleted.body["kind"] == "Service"
    assert await addresses(client) == {}


async def test_requested_cluster_ip_is_allocated_once(client):
    assert (await client.post(SERVICES, service("a", clusterIP="10.0.0.77"))).status == 201
    refused = await client.post(SERVICES, service("b", clusterIP="10.0.0.77"))
    assert refused.status == 422
    assert refused.body["message"] == (
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.77"]: '
        "failed to allocate IP 10.0.0.77: provided IP is already allocated"
    )
    elsewhere = await client.post(SERVICES, service("c", clusterIP="192.0.2.1"))
    assert elsewhere.body["message"].endswith("the provided network does not match the current range")


async def test_headless_and_external_name_services_have_no_cluster_ip(client):
    headless = await client.post(SERVICES, service("a", clusterIP="None", selector={"a": "b"}))
    external = await client.post(SERVICES, service("b", type="ExternalName", externalName="example.com"))
    assert headless.body["spec"]["clusterIPs"] == ["None"]
    assert "clusterIP" not in external.body["spec"]
    assert await addresses(client) == {}


async def test_type_change_releases_cluster_ip(client):
    await client.post(SERVICES, service("a"))
    changed = await client.patch(
        f"{SERVICES}/a", {"spec": {"type": "ExternalName", "externalName": "example.com"}}
    )
    assert changed.status == 200
    assert await addresses(client) == {}
    back = await client.patch(f"{SERVICES}/a", {"spec": {"type": "ClusterIP", "externalName": None}})
    assert await addresses(client) == {back.body["spec"]["clusterIP"]: "a"}


@pytest.mark.parametrize("address", ["10.0.9.9", "garbage", "None"])
async def test_type_change_releases_cluster_ip_though_another_is_sent(client, address):
    await client.post(SERVICES, service("a"))
    external = service("a", type="ExternalName", externalName="example.com", clusterIP=address)
    assert (await client.put(f"{SERVICES}/a", external)).status == 200
    assert await addresses(client) == {}


async def test_node_port_is_allocated_once_and_released(client):
    chosen = [{"port": 80, "nodePort": 31000}]
    assert (await client.post(SERVICES, service("a", type="NodePort", ports=chosen))).status == 201
    refused = await client.post(SERVICES, service("b", type="NodePort", ports=chosen))
    assert refused.body["details"]["causes"][0]["field"] == "spec.ports[0].nodePort"
    await client.patch(f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}})
    assert (await client.post(SERVICES, service("b", type="NodePort", ports=chosen))).status == 201
    await client.delete(f"{SERVICES}/b")
    assert (await client.post(SERVICES, service("c", type="NodePort", ports=chosen))).status == 201


async def test_omitted_node_port_is_kept_by_update(client):
    created = (await client.post(SERVICES, service("a", type="NodePort"))).body
    updated = (await client.put(f"{SERVICES}/a", service("a", type="NodePort"))).body
    assert updated["spec"] == created["spec"]


async def test_dry_run_returns_but_does_not_allocate_cluster_ip(client):
    shown = await client.post(f"{SERVICES}?dryRun=All", service("a", type="NodePort"))
    assert shown.body["spec"]["clusterIP"]
    assert shown.body["spec"]["ports"][0]["nodePort"]
    assert await addresses(client) == {}


async def test_refused_service_allocates_nothing(client):
    created = (await client.post(SERVICES, service("a"))).body
    assert (await client.post(SERVICES, service("a"))).status == 409
    assert await addresses(client) == {created["spec"]["clusterIP"]: "a"}


async def test_terminating_service_keeps_allocations(client):
    held = service("a", type="NodePort")
    held["metadata"]["finalizers"] = ["example.com/a"]
    created = (await client.post(SERVICES, held)).body
    await client.delete(f"{SERVICES}/a")
    assert await addresses(client) == {created["spec"]["clusterIP"]: "a"}
    await client.patch(f"{SERVICES}/a", {"metadata": {"finalizers": None}})
    assert (await client.get(f"{SERVICES}/a")).status == 404
    assert await addresses(client) == {}
    port = created["spec"]["ports"][0]["nodePort"]
    again = service("b", type="NodePort", ports=[{"port": 80, "nodePort": port}])
    assert (await client.post(SERVICES, again)).status == 201


async def test_services_deleted_together_release_everything(client):
    for name in "abc":
        await client.post(SERVICES, service(name, type="NodePort"))
    await client.delete(SERVICES)
    assert await addresses(client) == {}


async def test_service_cidr_adds_addresses(client):
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    await client.post(ranges, {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.9.0.0/24"]}})
    wished = service("a", clusterIP="10.9.0.7")
    assert (await client.post(SERVICES, wished)).status == 422
    await client.patch(f"{ranges}/more/status", ready("True"))
    assert (await client.post(SERVICES, wished)).status == 201


def ready(status):
    condition = {"type": "Ready", "status": status, "reason": "Ready", "message": ""}
    return {"status": {"conditions": [condition | {"lastTransitionTime": "2030-01-01T00:00:00Z"}]}}


async def test_unready_service_cidr_is_not_used(client):
    """Also the one of the flag, from which a cluster migrates to another in this way."""
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    default = {"metadata": {"name": "kubernetes", "finalizers": ["a.com/b"]}, "spec": {"cidrs": [DEFAULT]}}
    assert (await client.post(ranges, default)).status == 201
    first = (await client.post(SERVICES, service("before"))).body["spec"]["clusterIP"]
    assert ip_address(first) in ip_network(DEFAULT)
    await client.post(ranges, {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.9.0.0/24"]}})
    await client.patch(f"{ranges}/more/status", ready("True"))
    await client.patch(f"{ranges}/kubernetes/status", ready("False"))
    second = (await client.post(SERVICES, service("between"))).body["spec"]["clusterIP"]
    assert ip_address(second) in ip_network("10.9.0.0/24")
    await client.patch(f"{ranges}/kubernetes/status", ready("True"))
    await client.delete(f"{ranges}/kubernetes")
    third = (await client.post(SERVICES, service("after"))).body["spec"]["clusterIP"]
    assert ip_address(third) in ip_network("10.9.0.0/24")
    await client.patch(f"{ranges}/more/status", ready("False"))
    none = await client.post(SERVICES, service("none"))
    assert (none.status, none.body["message"].rpartition(": ")[2]) == (500, "range is full")
    for query in ("", "?dryRun=All"):
        chosen = await client.post(f"{SERVICES}{query}", service("chosen", clusterIP="10.9.0.7"))
        assert chosen.body["message"].endswith("the provided network does not match the current range")


async def test_ipv6_network_larger_than_int64_is_supported():
    network = ip_network("2001:db8::/64")
    async with apiserver.running(f"--service-cluster-ip-range={network}") as client:
        created = [(await client.post(SERVICES, service(name))).body for name in ("a", "b")]
        given = [ip_address(tree["spec"]["clusterIP"]) for tree in created]
        assert all(one in network for one in given)
        assert len({*given}) == 2


async def test_endpoints_are_deleted_with_service(client):
    await client.post(SERVICES, service("a"))
    await client.post("/api/v1/namespaces/default/endpoints", {"metadata": {"name": "a"}})
    await client.delete(f"{SERVICES}/a")
    assert (await client.get("/api/v1/namespaces/default/endpoints/a")).status == 404


async def test_two_servers_never_allocate_same_address():
    store = MemoryStore(clock=RealClock())
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(apiserver.running(kv=store)) for _ in range(2)]
        chosen = [{"port": 80, "nodePort": 31000}]

        async def create(number):
            client = clients[number % 2]
            # Every fifth service requests the same port and address; only one of them can have it.
            wish = {"ports": chosen, "clusterIP": "10.0.0.5"} if number % 5 == 0 else {}
            return await client.post(SERVICES, service(f"s{number}", type="NodePort", **wish))

        answers = await asyncio.gather(*map(create, range(40)))
        created = [answer.body["spec"] for answer in answers if answer.status == 201]
        assert len(created) == 33
        assert {answer.status for answer in answers} == {201, 422}
        assert len({spec["clusterIP"] for spec in created}) == 33
        assert len({spec["ports"][0]["nodePort"] for spec in created}) == 33
        assert (await addresses(clients[0])).keys() == {spec["clusterIP"] for spec in created}


async def test_address_is_managed_by_the_server(client):
    """As recorded from a real server."""
    created = await client.post(SERVICES, service("managed"))
    address = (await client.get(f"{ADDRESSES}/{created.body['spec']['clusterIP']}")).body
    (manager,) = address["metadata"]["managedFields"]
    assert manager.pop("time") == address["metadata"]["creationTimestamp"]
    labels = {".": {}} | {f"f:ipaddress.kubernetes.io/{name}": {} for name in ("ip-family", "managed-by")}
    assert manager == {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "networking.k8s.io/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": labels},
            "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
        },
    }
