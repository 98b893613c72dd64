"""The Available condition of APIServices."""

import pytest

from mockube.apimachinery import conditions
from tests.support.server import apiserver

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def available_condition(client, group, **spec):
    """Create an APIService with this spec, and wait for its condition."""
    wanted = {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 15} | spec
    async with client.watch(f"{API_SERVICES}?watch=1&fieldSelector=metadata.name=v1.{group}") as events:
        await client.post(API_SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": wanted})
        while True:
            event = await anext(events)
            if found := conditions.get(event["object"], "Available"):
                return found


async def test_local_api_service_is_available(client):
    condition = await available_condition(client, "example.com")
    assert (condition["status"], condition["reason"]) == ("True", "Local")


async def test_missing_service_is_named(client):
    service = {"name": "metrics", "namespace": "default"}
    condition = await available_condition(client, "example.com", service=service, insecureSkipTLSVerify=True)
    assert (condition["status"], condition["reason"]) == ("False", "ServiceNotFound")
    assert condition["message"] == 'service/metrics in "default" is not present'


async def test_service_without_endpoints_is_named(client):
    spec = {"ports": [{"port": 443}]}
    await client.post("/api/v1/namespaces/default/services", {"metadata": {"name": "metrics"}, "spec": spec})
    service = {"name": "metrics", "namespace": "default"}
    condition = await available_condition(client, "example.com", service=service, insecureSkipTLSVerify=True)
    assert (condition["status"], condition["reason"]) == ("False", "EndpointsNotFound")
    assert condition["message"] == 'cannot find endpointslices for service/metrics in "default"'


async def test_condition_is_managed_by_the_server(client):
    service = {"name": "metrics", "namespace": "default"}
    await available_condition(client, "example.com", service=service, insecureSkipTLSVerify=True)
    present = (await client.get(f"{API_SERVICES}/v1.example.com")).body
    (manager,) = [one for one in present["metadata"]["managedFields"] if one.get("subresource") == "status"]
    assert (manager["manager"], manager["operation"]) == ("kube-apiserver", "Update")
    conditions_ = manager["fieldsV1"]["f:status"]["f:conditions"]
    assert [*conditions_] == [".", 'k:{"type":"Available"}']
