"""Watches and field managers after a definition or its scale subresource changes."""

import asyncio

import pytest

from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition, version

COUNTED = {
    "type": "object",
    "properties": {"status": {"type": "object", "properties": {"count": {"type": "integer"}}}},
}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def test_definition_change_ends_watches(client):
    await define(client, definition())
    async with client.watch(f"{WIDGETS}?watch=1") as events:
        versions = [version(), version("v2", storage=False)]
        changed = await client.patch(f"{DEFINITIONS}/widgets.{GROUP}", {"spec": {"versions": versions}})
        assert changed.status == 200, changed.body
        assert [event async for event in events] == []


async def test_watches_see_objects_of_deleted_definition_until_their_end(client):
    """As recorded from a real server: while objects remain they are served, but no new ones are created."""
    await define(client, definition(version(), version("v2", storage=False)))
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    for sent in (held, {"metadata": {"name": "free"}}):
        await client.post(WIDGETS, {"apiVersion": f"{GROUP}/v1", "kind": "Widget", **sent})
    async with (
        client.watch(f"{WIDGETS}?watch=1") as events,
        client.watch(f"/apis/{GROUP}/v2/widgets?watch=1") as events_v2,
    ):
        await client.delete(f"{DEFINITIONS}/widgets.{GROUP}")
        expected = [("ADDED", "free"), ("ADDED", "held"), ("DELETED", "free"), ("MODIFIED", "held")]
        for stream in (events, events_v2):
            received = [await anext(stream) for _ in expected]
            assert [(event["type"], event["object"]["metadata"]["name"]) for event in received] == expected
        sent = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "new"}}
        refused = await client.post(WIDGETS, sent)
        assert refused.status == 403
        assert refused.body["message"] == (
            f'widgets.{GROUP} "new" is forbidden: '
            "create not allowed while custom resource definition is terminating"
        )
        assert [item["metadata"]["name"] for item in (await client.get(WIDGETS)).body["items"]] == ["held"]
        await client.patch(f"{WIDGETS}/held", {"metadata": {"finalizers": None}})
        for stream in (events, events_v2):
            rest = [(event["type"], event["object"]["metadata"]["name"]) async for event in stream]
            assert rest == [("DELETED", "held")]
    assert (await client.get(WIDGETS)).status == 404


async def test_manager_of_replicas_only_is_kept_across_versions(client):
    """As on a real server: each version declares its replicas path, and fields that are managed stay managed."""
    scales = {
        name: {"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}}
        for name, path in (("v1", ".spec.replicas"), ("v2", ".spec.wanted"))
    }
    versions = [
        version("v1", subresources=scales["v1"]),
        version("v2", storage=False, subresources=scales["v2"]),
    ]
    await define(client, definition(*versions))
    path = f"/apis/{GROUP}/v2/namespaces/default/widgets"
    sent = {"apiVersion": f"{GROUP}/v2", "kind": "Widget", "metadata": {"name": "a"}}
    await client.post(f"{path}?fieldManager=maker", sent | {"spec": {"wanted": 1, "replicas": 7}})
    applied = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "spec": {"replicas": 3}}
    await client.patch(f"{WIDGETS}/a?fieldManager=applier&force=true", applied, kind="apply-patch+yaml")
    scaled = await client.patch(f"{WIDGETS}/a/scale?fieldManager=scaler", {"spec": {"replicas": 5}})
    assert scaled.status == 200, scaled.body
    managers = (await client.get(f"{WIDGETS}/a")).body["metadata"]["managedFields"]
    assert [(one["manager"], one["fieldsV1"]) for one in managers] == [
        ("applier", {"f:spec": {}}),
        ("scaler", {"f:spec": {"f:replicas": {}}}),
        ("maker", {"f:spec": {}}),
    ]


async def test_status_sent_to_object_conflicts_with_its_manager_in_another_version(client):
    """As on a real server: only the version of the request drops the status before it is compared."""
    versions = [
        version(name, storage=name == "v1", subresources={"status": {}}, schema=COUNTED)
        for name in ("v1", "v2")
    ]
    await define(client, definition(*versions))
    sent = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a", "labels": {"a": "b"}}}
    await client.post(WIDGETS, sent)
    await client.patch(f"{WIDGETS}/a/status?fieldManager=m", {"status": {"count": 2}})
    answers = {}
    for name in ("v1", "v2"):
        applied = {"apiVersion": f"{GROUP}/{name}", "kind": "Widget", "status": {"count": 0}}
        path = f"/apis/{GROUP}/{name}/namespaces/default/widgets/a?fieldManager=m"
        answers[name] = await client.patch(path, applied, kind="apply-patch+yaml")
    assert answers["v1"].status == 200, answers["v1"].body
    assert answers["v2"].status == 409
    assert answers["v2"].body["message"] == (
        'Apply failed with 1 conflict: conflict with "m" with subresource "status" '
        f"using {GROUP}/v1: .status.count"
    )


@pytest.mark.parametrize(
    ("patch", "status", "warned"),
    [
        pytest.param(
            {"metadata": {"labels": {"a": "b"}}},
            200,
            ['299 - "spec: Invalid value: is needed"'],
            id="accepted",
        ),
        pytest.param(
            {"metadata": {"uid": "1"}}, 422, ['299 - "spec: Invalid value: is needed"'], id="refused"
        ),
        pytest.param({"spec": {"b": "x"}}, 422, [], id="wrong type, no rule evaluated"),
    ],
)
async def test_new_rule_that_unchanged_value_breaks_is_a_warning(client, patch, status, warned):
    """As on a real server, also if the update is refused for another reason."""
    fields = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    spec = {"type": "object", "properties": fields}

    def versions():
        schema = {"type": "object", "properties": {"spec": spec}}
        return [version() | {"schema": {"openAPIV3Schema": schema}}]

    await define(client, definition(*versions()))
    sent = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"b": 1}}
    assert (await client.post(WIDGETS, sent)).status == 201
    spec["x-kubernetes-validations"] = [{"rule": "has(self.a)", "message": "is needed"}]
    changed = await client.patch(f"{DEFINITIONS}/widgets.{GROUP}", {"spec": {"versions": versions()}})
    assert changed.status == 200, changed.body
    probe = sent | {"metadata": {"name": "b"}}
    async with asyncio.timeout(WAIT_TIMEOUT):
        while (await client.post(f"{WIDGETS}?dryRun=All", probe)).status != 422:
            pass
    answer = await client.patch(f"{WIDGETS}/a", patch)
    assert answer.status == status, answer.body
    assert [value for name, value in answer.headers.items() if name.lower() == "warning"] == warned


async def get_once_served(client, path):
    """Read a path of a new version that the definition lists before it is served."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while (answer := await client.get(path)).status == 404:
            pass
    return answer


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        pytest.param("PUT", "json", id="an update"),
        pytest.param("PATCH", "merge-patch+json", id="a patch"),
        pytest.param("PATCH", "apply-patch+yaml", id="an apply"),
    ],
)
async def test_unchanged_write_migrates_object_to_storage_version(client, method, kind):
    await define(client, definition(version("v1")))
    sent = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    created = await client.post(WIDGETS, sent)
    assert created.status == 201, created.body
    made = created.body
    path = f"{DEFINITIONS}/widgets.example.com"
    both = [version("v1", storage=False), version("v2")]
    assert (await client.patch(path, {"spec": {"versions": both}})).status == 200
    widget = f"{WIDGETS}/a".replace("/v1/", "/v2/")
    before = await get_once_served(client, widget)
    assert before.status == 200, before.body
    sent = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "a"}}
    sent = before.body if method == "PUT" else sent
    headers = {"Content_Type": f"application/{kind}"}
    after = (await client.send(method, f"{widget}?fieldManager=m", sent, **headers)).body
    assert after["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    sent = after if method == "PUT" else sent
    again = (await client.send(method, f"{widget}?fieldManager=m", sent, **headers)).body
    assert again["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert (await client.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}})).status == 200
    assert (await client.patch(path, {"spec": {"versions": [version("v2")]}})).status == 200
    assert (await client.get(widget)).status == 200


NAME, STATUS = {"metadata": {"name": "a"}}, {"subresources": {"status": {}}}
GONE = "request to convert CR to an invalid group/version: example.com/v1"


@pytest.fixture
async def widget(client):
    """Return the path of an object whose fields were applied in a version that its definition no longer has."""
    await define(client, definition(version("v1", **STATUS)))
    applied = {"apiVersion": "example.com/v1", "kind": "Widget", **NAME, "spec": {"replicas": 1}}
    patched = await client.patch(f"{WIDGETS}/a?fieldManager=m", applied, kind="apply-patch+yaml")
    assert patched.status == 201, patched.body
    path = f"{DEFINITIONS}/widgets.example.com"
    for name, versions in (
        ("v2", [version("v1", storage=False, **STATUS), version("v2", **STATUS)]),
        ("", [version("v2", **STATUS)]),
    ):
        assert (await client.patch(path, {"spec": {"versions": versions}})).status == 200
        if not name:
            continue
        widget = f"{WIDGETS}/a".replace("/v1/", "/v2/")
        await _until_status(client, widget, 200)
        assert (await client.patch(widget, {"metadata": {"labels": {"a": "b"}}})).status == 200
        assert (await client.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}})).status == 200
    await _until_status(client, WIDGETS, 404)
    return widget


@pytest.mark.parametrize("subresource", ["", "/status"])
async def test_apply_is_refused_while_managers_use_removed_version(client, widget, subresource):
    sent = {"apiVersion": "example.com/v2", "kind": "Widget", **NAME, "spec": {"replicas": 2}}
    path = f"{widget}{subresource}?fieldManager=m&force=true"
    answer = await client.patch(path, sent, kind="apply-patch+yaml")
    assert (answer.status, answer.body["message"]) == (500, GONE)


@pytest.mark.parametrize("kind", ["", "merge-patch+json", "json-patch+json"])
async def test_write_after_removed_version_keeps_all_managers(client, widget, kind):
    before = (await client.get(widget)).body
    assert before["metadata"]["managedFields"][0]["apiVersion"] == "example.com/v1"
    spec = {"replicas": 3}
    if not kind:
        answer = await client.put(widget, before | {"spec": spec})
    else:
        patch = [{"op": "add", "path": "/spec", "value": spec}] if "json-" in kind else {"spec": spec}
        answer = await client.patch(widget, patch, kind=kind)
    assert answer.status == 200, answer.body
    assert answer.body["metadata"]["managedFields"] == before["metadata"]["managedFields"]
    applied = {"apiVersion": "example.com/v2", "kind": "Widget", **NAME, "spec": {"replicas": 4}}
    again = await client.patch(f"{widget}?fieldManager=m&force=true", applied, kind="apply-patch+yaml")
    assert (again.status, again.body["message"]) == (500, GONE)


@pytest.mark.parametrize("is_migrated", [True, False], ids=["migrated", "not migrated"])
async def test_removed_version_keeps_watches_of_other_resources(client, is_migrated):
    await define(client, definition(version("v1")))
    sent = {"apiVersion": "example.com/v1", "kind": "Widget", **NAME}
    assert (await client.post(WIDGETS, sent)).status == 201
    path = f"{DEFINITIONS}/widgets.example.com"
    widget = f"{WIDGETS}/a".replace("/v1/", "/v2/")
    async with client.watch(f"{DEFINITIONS}?watch=1") as events:
        both = [version("v1", storage=False), version("v2")]
        assert (await client.patch(path, {"spec": {"versions": both}})).status == 200
        await _until_status(client, widget, 200)
        if is_migrated:
            assert (await client.patch(widget, {"metadata": {"labels": {"a": "b"}}})).status == 200
        assert (await client.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}})).status == 200
        assert (await client.patch(path, {"spec": {"versions": [version("v2")]}})).status == 200
        await _until_status(client, WIDGETS, 404)
        await _until_status(client, widget, 200 if is_migrated else 500)
        assert (await client.delete(path)).status == 200
        async with asyncio.timeout(WAIT_TIMEOUT):
            types = [event["type"] async for event in _until_deleted(events)]
    assert types[-1] == "DELETED"


async def _until_status(client, path, status):
    """Wait until the server has processed a definition: until a get returns this status."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while (await client.get(path)).status != status:
            pass  # each request yields to the server's tasks


async def _until_deleted(events):
    """Return the events of a watch up to the first deletion; empty if the watch ends earlier."""
    async for event in events:
        yield event
        if event["type"] in ("DELETED", "ERROR"):
            return
