"""Aggregated discovery includes resources of other API servers, from one document or one list per version."""

import asyncio
import contextlib

import pytest

from mockube.apiserver.aggregation.discovery import ACCEPT
from tests.support.server import apiserver
from tests.support.server.aggregated_server import GROUP, PATH, aggregated_server

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
AT_ONCE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
SERVICE = {
    "metadata": {"name": "agg"},
    "spec": {"ports": [{"port": 443}], "type": "ExternalName", "externalName": "a.b"},
}
KIND = {"group": GROUP, "version": "v1", "kind": "Gadget"}
NO_KIND = {"group": "", "version": "", "kind": ""}
WAIT_TIMEOUT = 30.0


def document(*versions, kind="APIGroupDiscoveryList", version="apidiscovery.k8s.io/v2"):
    group = {"metadata": {"name": GROUP}, "versions": [*versions]}
    return {"kind": kind, "apiVersion": version, "metadata": {}, "items": [group]}


def gadgets(**fields):
    entry = {
        "resource": "gadgets",
        "responseKind": KIND,
        "scope": "Cluster",
        "singularResource": "gadget",
        "verbs": ["list", "watch"],
    }
    return entry | fields


WHOLE = document({"version": "v1", "resources": [gadgets()], "freshness": "Stale"})


@pytest.fixture
async def server(tmp_path):
    async with aggregated_server(tmp_path) as server:
        yield server


@contextlib.asynccontextmanager
async def client_of(server, *versions):
    """A client of an API server that proxies versions of a group to another server."""
    async with apiserver.running(f"--webhook-service=default/agg=127.0.0.1:{server.port}") as client:
        assert (await client.post("/api/v1/namespaces/default/services", SERVICE)).status == 201
        for version in versions:
            tree = server.api_service(version=version)
            tree["metadata"]["name"] = f"{version}.{GROUP}"
            assert (await client.post(SERVICES, tree)).status == 201
            path = f"{SERVICES}?watch=1&fieldSelector=metadata.name%3D{version}.{GROUP}"
            async with client.watch(path) as events:
                async for event in events:
                    conditions = event["object"].get("status", {}).get("conditions", ())
                    if any(one["status"] == "True" for one in conditions):
                        break
        yield client


async def versions_of(client):
    groups = (await client.get("/apis", Accept=AT_ONCE)).body["items"]
    return next(group for group in groups if group["metadata"]["name"] == GROUP)["versions"]


async def served_version(server):
    async with client_of(server, "v1") as client:
        (version,) = await versions_of(client)
        return version


async def test_aggregated_discovery_document_is_sufficient(server):
    server.whole, server.lists = WHOLE, False
    assert await served_version(server) == {"version": "v1", "resources": [gadgets()], "freshness": "Current"}


async def test_aggregated_discovery_document_precedes_resource_lists(server):
    server.whole = WHOLE
    assert (await served_version(server))["resources"] == [gadgets()]


async def test_resource_lists_are_sufficient(server):
    version = await served_version(server)
    assert version["freshness"] == "Current"
    (things,) = version["resources"]
    assert (things["resource"], things["subresources"][0]["subresource"]) == ("things", "status")


async def test_both_are_requested_as_kube_aggregator_requests_them(server):
    await served_version(server)
    json = "application/json"
    assert server.discovered[:3] == [
        (PATH, "system:kube-aggregator", "system:masters", json, None),
        ("/apis", "system:kube-aggregator", "system:masters", ACCEPT, None),
        (PATH, "system:kube-aggregator", None, json, None),
    ]


@pytest.mark.parametrize(
    ("content_type", "resource"),
    [
        (AT_ONCE, "gadgets"),
        (AT_ONCE.replace("v2", "v2beta1"), "gadgets"),
        (f"{AT_ONCE}; charset=utf-8", "gadgets"),
        (AT_ONCE.replace("v2", "v3"), "things"),
        ("application/json", "things"),
        ("text/plain;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "things"),
    ],
)
async def test_content_type_selects_document_or_lists(server, content_type, resource):
    server.whole, server.whole_type = WHOLE, content_type
    assert [one["resource"] for one in (await served_version(server))["resources"]] == [resource]


@pytest.mark.parametrize("status", [404, 406, 403, 500, 302])
async def test_other_response_falls_back_to_resource_lists(server, status):
    server.whole = status
    assert [one["resource"] for one in (await served_version(server))["resources"]] == ["things"]


@pytest.mark.parametrize(
    "whole",
    [503, b"{", document(kind="Other"), document(version="v1"), document({"version": 1})],
    ids=["503", "no JSON", "another kind", "another version", "another type"],
)
async def test_invalid_document_makes_version_stale(server, whole):
    server.whole = whole
    assert await served_version(server) == {"version": "v1", "freshness": "Stale"}


async def test_server_without_document_and_lists_is_stale(server):
    server.lists = False
    assert await served_version(server) == {"version": "v1", "freshness": "Stale"}


async def test_version_missing_in_document_has_no_resources(server):
    server.whole = document({"version": "v2", "resources": [gadgets()]})
    assert await served_version(server) == {"version": "v1", "freshness": "Current"}


async def test_fields_are_written_as_upstream_writes_them(server):
    fields = {"shortNames": [], "categories": ["all"], "responseKind": None, "verbs": None, "unknown": 1}
    sub = {"subresource": "status", "acceptedTypes": [KIND], "verbs": ["get"]}
    server.whole = document({"version": "v1", "resources": [gadgets(**fields, subresources=[sub])]})
    (resource,) = (await served_version(server))["resources"]
    assert resource == {
        "resource": "gadgets",
        "responseKind": NO_KIND,
        "scope": "Cluster",
        "singularResource": "gadget",
        "verbs": None,
        "categories": ["all"],
        "subresources": [
            {"subresource": "status", "responseKind": NO_KIND, "acceptedTypes": [KIND], "verbs": ["get"]}
        ],
    }


async def test_versions_of_service_share_document_and_its_etag(server):
    server.whole = document(*({"version": name, "resources": [gadgets()]} for name in ("v1", "v2")))
    async with client_of(server, "v1", "v2") as client:
        assert [one["freshness"] for one in await versions_of(client)] == ["Current", "Current"]
        server.discovered.clear()
        changed = {"metadata": {"labels": {"a": "b"}}}
        assert (await client.patch(f"{SERVICES}/v1.{GROUP}", changed)).status == 200
        async with asyncio.timeout(WAIT_TIMEOUT):
            while not any(path == "/apis" for path, *_ in server.discovered):
                assert (await client.get("/version")).status == 200
        (etag,) = {match for path, _, _, _, match in server.discovered if path == "/apis"}
        assert etag
        assert [one["resources"] for one in await versions_of(client)] == [[gadgets()], [gadgets()]]
