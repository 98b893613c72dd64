"""Simulated metrics have no APIServices: a chart creates its own, its server takes over, and the simulated ones return."""

import contextlib

import pytest

from mockube.apiserver.bootstrap.apiservices import delete_unserved
from tests.support.server import apiserver
from tests.support.server.aggregated_server import aggregated_server

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
ALL_AT_ONCE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
EXTERNAL, CUSTOM, RESOURCE = "external.metrics.k8s.io", "custom.metrics.k8s.io", "metrics.k8s.io"
KWOK = "/apis/kwok.x-k8s.io/v1alpha1"
KINDS = {"custommetrics": ("CustomMetric", "Cluster"), "externalmetrics": ("ExternalMetric", "Namespaced")}


@pytest.fixture
async def server(tmp_path):
    async with aggregated_server(tmp_path) as server:
        yield server


@pytest.fixture
async def client(server):
    flags = f"--webhook-service=default/agg=127.0.0.1:{server.port}", "--simulate-metrics=true"
    async with apiserver.running(*flags) as client:
        yield client


async def define(client):
    """Create kwok's definitions of metrics, and wait until they are served."""
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    for plural, (kind, scope) in KINDS.items():
        version = {"name": "v1alpha1", "served": True, "storage": True, "schema": anything}
        names = {"plural": plural, "kind": kind}
        spec = {"group": "kwok.x-k8s.io", "scope": scope, "names": names, "versions": [version]}
        definition = {"metadata": {"name": f"{plural}.kwok.x-k8s.io"}, "spec": spec}
        await client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        while (await client.get(f"{KWOK}/{plural}")).status != 200:
            pass


async def create_metrics(client):
    queue = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ExternalMetric", "metadata": {"name": "queue"}}
    queue["spec"] = {"metrics": [{"value": "5"}]}
    load = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "CustomMetric", "metadata": {"name": "load"}}
    load["spec"] = {
        "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
        "metrics": [{"name": "load", "value": "7"}],
    }
    for path, body in (
        (f"{KWOK}/namespaces/default/externalmetrics", queue),
        (f"{KWOK}/custommetrics", load),
    ):
        assert (await client.post(path, body)).status == 201


async def create_api_service(client, server, group, version="v1beta1", **spec):
    """Create the APIService as a chart does, which must not exist before."""
    tree = server.api_service(group=group, version=version, **spec)
    tree["metadata"]["name"] = f"{version}.{group}"
    answer = await client.post(SERVICES, tree)
    assert answer.status == 201, answer.body


async def wait_reason(client, name, reason):
    path = f"{SERVICES}?watch=1&fieldSelector=metadata.name%3D{name}"
    async with client.watch(path) as events:
        async for event in events:
            conditions = event["object"].get("status", {}).get("conditions", ())
            if any(condition["reason"] == reason for condition in conditions):
                return


@contextlib.asynccontextmanager
async def running_backend(client):
    """Create the Service and the endpoints of the adapter within the block."""
    spec = {"ports": [{"port": 443}]}
    await client.post("/api/v1/namespaces/default/services", {"metadata": {"name": "agg"}, "spec": spec})
    endpoint_slice = {
        "metadata": {"name": "agg-1", "labels": {"kubernetes.io/service-name": "agg"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 443}],
        "endpoints": [{"addresses": ["10.9.8.7"]}],
    }
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    await client.post(slices, endpoint_slice)
    yield
    await client.delete(f"{slices}/agg-1")


async def discovered(client):
    """Return the groups of metrics, which legacy and aggregated discovery and the index agree about."""
    legacy = [group["name"] for group in (await client.get("/apis")).body["groups"]]
    items = (await client.get("/apis", Accept=ALL_AT_ONCE)).body["items"]
    aggregated = [item["metadata"]["name"] for item in items]
    assert aggregated == legacy
    assert all(
        version["resources"] for item in items for version in item["versions"] if "resources" in version
    )
    paths = (await client.get("/")).body["paths"]
    assert sorted(legacy) == sorted(
        {path.split("/")[2] for path in paths if path.startswith("/apis/")} - {""}
    )
    return sorted(name for name in legacy if name.endswith("metrics.k8s.io"))


async def test_simulated_metrics_have_no_api_services(client):
    names = [item["metadata"]["name"] for item in (await client.get(SERVICES)).body["items"]]
    assert [name for name in names if "metrics" in name] == []
    assert (await client.get(f"/apis/{RESOURCE}/v1beta1/nodes")).body["kind"] == "NodeMetricsList"


async def test_empty_groups_of_metrics_are_not_discovered(client):
    assert await discovered(client) == [RESOURCE]
    for group in (CUSTOM, EXTERNAL):
        for path in ("", "/v1beta1", "/v1beta1/namespaces/default/queue"):
            assert (await client.get(f"/apis/{group}{path}")).data == b"404 page not found\n"
        assert group not in (await client.get("/openapi/v3")).data.decode()
    await define(client)
    assert await discovered(client) == [RESOURCE]
    await create_metrics(client)
    assert await discovered(client) == [CUSTOM, EXTERNAL, RESOURCE]
    items = (await client.get("/apis", Accept=ALL_AT_ONCE)).body["items"]
    versions = {item["metadata"]["name"]: item["versions"] for item in items}
    assert [version["version"] for version in versions[CUSTOM]] == ["v1beta2", "v1beta1"]
    assert [resource["resource"] for resource in versions[EXTERNAL][0]["resources"]] == ["queue"]
    await client.delete(f"{KWOK}/namespaces/default/externalmetrics/queue")
    assert await discovered(client) == [CUSTOM, RESOURCE]
    await client.delete(f"{KWOK}/custommetrics/load")
    assert await discovered(client) == [RESOURCE]


async def test_adapter_takes_over_and_simulated_metrics_return(client, server):
    await define(client)
    await create_metrics(client)
    external = f"/apis/{EXTERNAL}/v1beta1/namespaces/default/queue"
    assert (await client.get(external)).body["items"][0]["value"] == "5"
    await create_api_service(client, server, EXTERNAL)
    await wait_reason(client, f"v1beta1.{EXTERNAL}", "ServiceNotFound")
    assert (await client.get(external)).data == b"service unavailable\n"
    async with running_backend(client):
        await wait_reason(client, f"v1beta1.{EXTERNAL}", "Passed")
        assert (await client.get(external)).body["kind"] == "Echo"
        assert (await client.get(f"/apis/{CUSTOM}/v1beta2")).body["kind"] == "APIResourceList"
    await wait_reason(client, f"v1beta1.{EXTERNAL}", "EndpointsNotFound")
    assert (await client.get(external)).status == 503
    await client.delete(f"{SERVICES}/v1beta1.{EXTERNAL}")
    assert (await client.get(external)).body["items"][0]["value"] == "5"
    assert await discovered(client) == [CUSTOM, EXTERNAL, RESOURCE]


async def test_server_of_one_version_replaces_only_that_version(client, server):
    await define(client)
    await create_metrics(client)
    async with running_backend(client):
        for group in (RESOURCE, CUSTOM):
            await create_api_service(client, server, group)
            await wait_reason(client, f"v1beta1.{group}", "Passed")
        assert (await client.get(f"/apis/{RESOURCE}/v1beta1/nodes")).body["kind"] == "Echo"
        group = await client.get(f"/apis/{CUSTOM}")
        assert [version["version"] for version in group.body["versions"]] == ["v1beta2", "v1beta1"]
        assert (await client.get(f"/apis/{CUSTOM}/v1beta1")).body["kind"] == "Echo"
        assert (await client.get(f"/apis/{CUSTOM}/v1beta2")).body["kind"] == "APIResourceList"
    for group in (RESOURCE, CUSTOM):
        await client.delete(f"{SERVICES}/v1beta1.{group}")
    assert (await client.get(f"/apis/{RESOURCE}/v1beta1/nodes")).body["kind"] == "NodeMetricsList"
    assert await discovered(client) == [CUSTOM, EXTERNAL, RESOURCE]


async def test_other_version_of_metrics_leaves_simulated_one(client, server):
    await create_api_service(client, server, RESOURCE, "v1alpha1", versionPriority=10)
    await wait_reason(client, f"v1alpha1.{RESOURCE}", "ServiceNotFound")
    assert (await client.get(f"/apis/{RESOURCE}/v1beta1/nodes")).body["kind"] == "NodeMetricsList"
    assert (await client.get(f"/apis/{RESOURCE}/v1alpha1/nodes")).status == 503
    group = (await client.get(f"/apis/{RESOURCE}")).body
    assert [version["version"] for version in group["versions"]] == ["v1", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "v1"


async def test_api_services_of_an_earlier_start_are_deleted(client):
    """As upstream, whose label `onstart` is on those that a server creates for what it serves itself."""
    labels = {"kube-aggregator.kubernetes.io/automanaged": "onstart"}
    for name, metadata in ((RESOURCE, {"labels": labels}), (CUSTOM, {}), (EXTERNAL, {"labels": labels})):
        spec = {"group": name, "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100}
        await client.post(SERVICES, {"metadata": {"name": f"v1beta1.{name}"} | metadata, "spec": spec})
    await delete_unserved(client.server.registry, {f"v1beta1.{EXTERNAL}"})
    names = [item["metadata"]["name"] for item in (await client.get(SERVICES)).body["items"]]
    assert names == [f"v1beta1.{CUSTOM}", f"v1beta1.{EXTERNAL}"]
