"""Writes whose stages are repeated because another write came between, and odd objects of clients."""

import asyncio

import orjson
import pytest

from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.user import User
from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.kv import Put
from tests.support.server import apiserver
from tests.support.server.definitions import GROUP, WIDGETS, define, definition, version
from tests.support.server.rows import catalog

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
SERVICES = "/api/v1/namespaces/default/services"
ANY = {"x-kubernetes-preserve-unknown-fields": True}
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def pod(name):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}


async def test_delete_succeeds_if_another_write_ends_the_marked_object(client, monkeypatch):
    await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    await client.post(PODS, pod("a"))
    cache, patched = client.server.registry.watch_cache, []
    deliver = type(cache).deliver

    async def patch_meanwhile(self):
        await deliver(self)
        if not patched:
            patched.append(True)
            body = {"metadata": {"labels": {"a": "b"}}}
            assert (
                await client.send("PATCH", f"{PODS}/a", orjson.dumps(body), Content_Type=MERGE)
            ).status == 200

    monkeypatch.setattr(type(cache), "deliver", patch_meanwhile)
    version = (await client.get(f"{PODS}/a")).body["metadata"]["resourceVersion"]
    options = {"gracePeriodSeconds": 0, "preconditions": {"resourceVersion": version}}
    response = await client.delete(f"{PODS}/a", options)
    assert (response.status, response.body["metadata"]["name"]) == (200, "a")
    assert patched
    assert (await client.get(f"{PODS}/a")).status == 404


async def test_write_that_changes_nothing_removes_object_that_waits_for_nothing(client):
    registry = client.server.registry
    tree = (await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})).body
    tree["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    del tree["metadata"]["resourceVersion"]
    stored = await registry.kv.put(Put(key=b"/registry/configmaps/default/a", value=orjson.dumps(tree)))
    await registry.watch_cache.wait_reached(stored.revision)
    response = await client.put(f"{CONFIG_MAPS}/a", tree)
    assert (response.status, response.body["metadata"]["name"]) == (200, "a")
    assert (await client.get(f"{CONFIG_MAPS}/a")).status == 404


async def test_repeated_creation_is_charged_once(tmp_path):
    # Writes of a store on a disk wait, so that all six compare the same record of ports, and five of them are repeated.
    store = await DurableStore.open(tmp_path, clock=RealClock())
    async with apiserver.running(kv=store) as client:
        quota = {"metadata": {"name": "q"}, "spec": {"hard": {"services": "6"}}}
        created = (await client.post(QUOTAS, quota)).body
        status = {"hard": {"services": "6"}, "used": {"services": "0"}}
        assert (await client.put(f"{QUOTAS}/q/status", {**created, "status": status})).status == 200
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        services = [{"metadata": {"name": f"s{number}"}, "spec": spec} for number in range(6)]
        responses = await asyncio.gather(*(client.post(SERVICES, service) for service in services))
        assert [response.status for response in responses] == [201] * 6
        assert (await client.get(f"{QUOTAS}/q")).body["status"]["used"] == {"services": "6"}


@pytest.mark.parametrize(
    "data",
    [pytest.param(rb'{"a":"\ud800"}', id="half of a pair"), pytest.param(b'{"a":"\xff"}', id="a byte")],
)
async def test_raw_field_with_invalid_text_is_stored(client, data):
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    head = b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"c"},'
    response = await client.post(path, b'%b"revision":1,"data":%b}' % (head, data))
    assert response.status == 201


async def test_test_of_a_patch_compares_numbers_of_a_raw_field(client):
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    head = b'{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"c"},'
    await client.post(path, b'%b"revision":1,"data":{"x":1.5}}' % head)
    patch = b'[{"op":"test","path":"/data/x","value":1.50},{"op":"replace","path":"/revision","value":2}]'
    response = await client.send("PATCH", f"{path}/c", patch, Content_Type="application/json-patch+json")
    assert response.status == 200


async def test_applied_null_is_dropped(client):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": ANY}}}}
    await define(client, definition(version(schema=schema)))
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"a": None}}
    refused = await client.send(
        "PATCH", f"{WIDGETS}/w?fieldManager=x", orjson.dumps(body), Content_Type=APPLY.title()
    )
    assert (
        refused.status == 415
    )  # the media type of a patch, unlike that of other bodies, is compared with its case
    for query, code in (("&dryRun=All", 201), ("", 201), ("", 200)):
        path = f"{WIDGETS}/w?fieldManager=x{query}"
        response = await client.send("PATCH", path, orjson.dumps(body), Content_Type=APPLY)
        assert (response.status, response.body["spec"]) == (code, {})


class CountedReference(dict):
    """An owner reference that counts its comparisons with others."""

    comparisons = 0
    __hash__ = None

    def __eq__(self, other):
        CountedReference.comparisons += 1
        return super().__eq__(other)


def test_references_with_one_uid_are_not_compared_with_each_other(monkeypatch):
    """Comparing each with all before it would take quadratic time."""
    monkeypatch.setattr(CountedReference, "comparisons", 0)
    references = [CountedReference(uid="u", name=str(number)) for number in range(100)]
    tree = {"metadata": {"ownerReferences": [*references, CountedReference(references[0])]}}
    context = RequestContext(verb="create", resource=catalog()["", "v1", "pods"], user=User(name="u"))
    unique = metadata.without_duplicate_owners(tree, context)
    assert CountedReference.comparisons <= len(references)
    assert unique["metadata"]["ownerReferences"] == references
    assert "u" in context.report.warnings[0]


async def test_write_of_other_times_of_managers_makes_no_version(client):
    created = await client.post(
        f"{CONFIG_MAPS}?fieldManager=x", {"metadata": {"name": "c"}, "data": {"a": "b"}}
    )
    sent = orjson.loads(orjson.dumps(created.body))
    sent["metadata"]["managedFields"][0]["time"] = "2001-01-01T00:00:00Z"
    response = await client.put(f"{CONFIG_MAPS}/c?fieldManager=x", sent)
    assert response.body["metadata"] == created.body["metadata"]
