"""Custom resources with a conversion webhook.

Answers and messages are those of kube-apiserver 1.36, whose webhook did the same; those of failed reads also of 1.37.
"""

import asyncio
import re

import pytest

from tests.support.server import apiserver
from tests.support.server.conversion_server import GROUP, MESSAGES, conversion_server

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
V1, V2 = (f"/apis/{GROUP}/{version}/namespaces/default/hooks" for version in ("v1", "v2"))
APPLY = "apply-patch+yaml"
FAILED = "conversion webhook for versions.test/v2, Kind=Hook "
CORRUPT = (
    "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /versions.test/hooks/default/{}, "
    "ResourceVersion: 0, AdditionalErrorMsg: "
)
UNDECODABLE = re.compile(r"object not decodable revision=\d+: ")


@pytest.fixture
async def hooks(tmp_path):
    async with conversion_server(tmp_path) as server:
        yield server


@pytest.fixture
async def client(hooks):
    async with apiserver.running() as client:
        await define(client, hooks.definition())
        yield client


async def define(client, definition):
    answer = await client.post(DEFINITIONS, definition)
    assert answer.status == 201, answer.body
    await wait_until_settled(client)


async def wait_until_settled(client):
    """Wait until the definitions satisfy a condition."""
    await client.server.registry.watch_cache.fresh()
    for settle in client.server.context.on_restored:
        await asyncio.wait_for(settle(), 5)


def problem_of_read(answer, name="a"):
    """Return the problem for which a stored object cannot be read."""
    prefix, problem = UNDECODABLE.split(answer.body["message"])
    assert (answer.status, prefix, answer.body["reason"]) == (500, CORRUPT.format(name), "InternalError")
    return problem


def hook(name, version="v1", **spec):
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Hook", "metadata": {"name": name}, "spec": spec}


async def change(client, **spec):
    """Change the definition, and wait until the change takes effect."""
    path = f"{DEFINITIONS}/hooks.{GROUP}"
    before = (await client.get(path)).body
    after = (await client.put(path, before | {"spec": before["spec"] | spec})).body
    assert after.get("code") is None, after
    await wait_until_settled(client)
    return after


# --- reads and writes


async def test_each_version_has_its_fields_and_defaults(client, hooks):
    created = (await client.post(V1, hook("a", host="h"))).body
    assert created["spec"] == {"host": "h", "size": 3}
    shown = (await client.get(f"{V2}/a")).body
    assert shown["apiVersion"] == f"{GROUP}/v2"
    assert shown["spec"] == {"colour": "red", "endpoint": {"host": "h", "port": 80}, "size": 3}
    # Converted to the stored version and back to the requested one; the stored version is read without conversion.
    assert hooks.requests == [(f"{GROUP}/v2", ["a"]), (f"{GROUP}/v1", ["a"])]


@pytest.mark.parametrize("path", [V1, V2], ids=["v1", "v2"])
async def test_dry_runs_return_object_in_requested_version_and_store_nothing(client, hooks, path):
    version = "v1" if path == V1 else "v2"
    await client.post(V2, hook("a", "v2", endpoint={"host": "h", "port": 1}))
    before = (await client.get(f"{path}/a")).body
    body, dry_run = hook("a", version, size=7), "dryRun=All&fieldManager=m"
    answers = [
        await client.post(f"{path}?{dry_run}", hook("b", version, size=7)),
        await client.put(f"{path}/a?{dry_run}", before | {"spec": before["spec"] | {"size": 7}}),
        await client.patch(f"{path}/a?{dry_run}", {"spec": {"size": 7}}),
        await client.patch(f"{path}/a?{dry_run}&force=true", body, kind=APPLY),
        await client.patch(f"{path}/c?{dry_run}", hook("c", version, size=7), kind=APPLY),
    ]
    assert [answer.status for answer in answers] == [201, 200, 200, 200, 201]
    assert {answer.body["apiVersion"] for answer in answers} == {f"{GROUP}/{version}"}
    assert {answer.body["spec"]["size"] for answer in answers} == {7}
    assert (await client.get(f"{path}/a")).body == before
    assert len((await client.get(path)).body["items"]) == 1


async def test_converted_objects_are_cached_for_lists(client, hooks):
    for name in "abc":
        await client.post(V2, hook(name, "v2", endpoint={"host": name}))
    assert hooks.requests == []
    items = (await client.get(V1)).body["items"]
    assert [(item["apiVersion"], item["spec"]) for item in items] == [
        (f"{GROUP}/v1", {"host": name}) for name in "abc"
    ]
    chosen = (await client.get(f"{V1}?fieldSelector=spec.host%3Db")).body["items"]
    assert [item["metadata"]["name"] for item in chosen] == ["b"]
    assert hooks.requests == [(f"{GROUP}/v1", ["a", "b", "c"])]


async def test_patch_applies_in_version_of_request(client):
    await client.post(V1, hook("a", host="h"))
    patched = (await client.patch(f"{V1}/a", {"spec": {"host": "i"}})).body
    assert (patched["spec"], patched["metadata"]["generation"]) == ({"host": "i", "size": 3}, 2)
    assert (await client.get(f"{V2}/a")).body["spec"]["endpoint"]["host"] == "i"
    status = await client.put(f"{V1}/a/status", patched | {"status": {"x": 1}})
    assert status.body["metadata"]["generation"] == 2


async def test_managers_of_other_versions_keep_fields(client):
    await client.patch(f"{V1}/a?fieldManager=one", hook("a", host="h"), kind=APPLY)
    taken = hook("a", "v2", endpoint={"host": "i"})
    refused = await client.patch(f"{V2}/a?fieldManager=two", taken, kind=APPLY)
    assert refused.status == 409
    assert refused.body["details"]["causes"][0]["message"] == 'conflict with "one"'
    forced = await client.patch(f"{V2}/a?fieldManager=two&force=true", taken, kind=APPLY)
    owners = {one["manager"]: one["fieldsV1"] for one in forced.body["metadata"]["managedFields"]}
    assert owners == {"two": {"f:spec": {"f:endpoint": {"f:host": {}}}}}


async def test_conversion_may_change_labels_and_annotations_only(client, hooks):
    hooks.mode = "labels"
    metadata = (await client.post(V1, hook("a", host="h"))).body["metadata"]
    assert metadata["labels"] == {"converted": "yes"}
    assert metadata["generation"] == 1
    assert "finalizers" not in metadata


async def test_v1beta1_conversion_response_needs_no_uid(client, hooks):
    conversion = hooks.definition(versions=["v1beta1"])["spec"]["conversion"]
    await change(client, conversion=conversion)
    hooks.mode = "uid"
    assert (await client.post(V1, hook("a", host="h"))).status == 201


# --- failures


@pytest.mark.parametrize("mode", MESSAGES)
async def test_invalid_conversion_response_is_an_error(client, hooks, mode):
    await client.post(V2, hook("a", "v2", endpoint={"host": "h"}))
    hooks.mode = mode
    assert problem_of_read(await client.get(f"{V1}/a")) == FAILED + MESSAGES[mode]
    assert (await client.get(f"{V2}/a")).status == 200


async def test_write_of_an_object_that_is_not_converted_names_its_revision(client, hooks):
    await client.post(V2, hook("a", "v2", endpoint={"host": "h"}))
    hooks.mode = "failed"
    answer = await client.patch(f"{V1}/a", {"spec": {"host": "i"}})
    prefix, problem = UNDECODABLE.split(answer.body["message"])
    assert (answer.status, prefix, problem) == (500, "", FAILED + MESSAGES["failed"])
    assert "reason" not in answer.body


async def test_older_minors_report_the_webhooks_failure_alone(hooks):
    async with apiserver.running("--kubernetes-version=1.36") as client:
        await define(client, hooks.definition())
        await client.post(V2, hook("a", "v2", endpoint={"host": "h"}))
        hooks.mode = "failed"
        answer = await client.get(f"{V1}/a")
        assert (answer.status, answer.body["message"]) == (500, FAILED + MESSAGES["failed"])
        assert "reason" not in answer.body


async def test_conversion_response_needs_request_uid(client, hooks):
    hooks.mode = "uid"
    answer = await client.post(V1, hook("a", host="h"))
    begin = "conversion webhook for versions.test/v1, Kind=Hook failed: expected response.uid="
    assert answer.status == 500
    assert answer.body["message"].startswith(begin)
    assert answer.body["message"].endswith(', got "other"')


async def test_failed_conversion_fails_request_and_changes_nothing(client, hooks):
    await client.post(V2, hook("a", "v2", endpoint={"host": "h"}))
    before = (await client.get(f"{V2}/a")).body
    hooks.mode = "failed"
    requests = [
        client.delete(f"{V1}/a"),
        client.delete(V1),
        client.get(V1),
        client.patch(f"{V1}/a", {"spec": {"host": "i"}}),
        client.post(V1, hook("b", host="h")),
    ]
    assert [(await request).status for request in requests] == [500] * 5
    assert (await client.get(V2)).body["items"] == [before]
    assert (await client.delete(f"{V2}/a")).status == 200


async def test_scale_is_read_from_converted_object(client, hooks):
    versions = [dict(version) for version in hooks.definition()["spec"]["versions"]]
    for version, path in zip(versions, (".spec.size", ".spec.endpoint.port"), strict=True):
        scale = {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}
        version["subresources"] = {"status": {}, "scale": scale}
    await change(client, versions=versions)
    await client.post(V2, hook("a", "v2", size=3, endpoint={"host": "h", "port": 7}))
    assert (await client.get(f"{V1}/a/scale")).body["spec"] == {"replicas": 3}
    assert (await client.get(f"{V2}/a/scale")).body["spec"] == {"replicas": 7}
    await client.post(V2, hook("b", "v2", size=3, endpoint={"host": "h", "port": 7}))
    hooks.mode = "failed"
    assert problem_of_read(await client.get(f"{V1}/b/scale"), "b") == FAILED + MESSAGES["failed"]


async def test_unreachable_conversion_webhook_is_connection_refused(client, hooks):
    await client.post(V2, hook("a", "v2", endpoint={"host": "h"}))
    conversion = hooks.definition(url="https://127.0.0.1:1/convert")["spec"]["conversion"]
    await change(client, conversion=conversion)
    answer = await client.get(f"{V1}/a")
    post = 'failed: Post "https://127.0.0.1:1/convert?timeout=30s": dial tcp 127.0.0.1:1: connect: '
    assert problem_of_read(answer) == f"{FAILED}{post}connection refused"


async def test_missing_conversion_service_is_an_error(client, hooks):
    await client.post(V2, hook("a", "v2", endpoint={"host": "h"}))
    conversion = hooks.definition()["spec"]["conversion"]
    conversion["webhook"]["clientConfig"] = {"service": {"namespace": "default", "name": "no", "path": "/x"}}
    await change(client, conversion=conversion)
    answer = await client.get(f"{V1}/a")
    post = 'failed: Post "https://no.default.svc:443/x?timeout=30s": service "no" not found'
    assert problem_of_read(answer) == FAILED + post


# --- the storage version


async def test_written_object_is_stored_in_new_storage_version(client, hooks):
    await client.post(V1, hook("a", host="h"))
    versions = [
        version | {"storage": version["name"] == "v1"} for version in hooks.definition()["spec"]["versions"]
    ]
    changed = await change(client, versions=versions)
    assert changed["status"]["storedVersions"] == ["v2", "v1"]
    shown = (await client.get(f"{V1}/a")).body
    hooks.mode = "failed"
    assert ((await client.get(f"{V1}/a")).status, (await client.get(f"{V2}/a")).status) == (500, 200)
    hooks.mode = ""
    assert (await client.put(f"{V1}/a", shown)).status == 200
    hooks.mode = "failed"
    assert ((await client.get(f"{V1}/a")).status, (await client.get(f"{V2}/a")).status) == (200, 500)


# --- admission


async def test_policies_receive_object_in_their_version(client):
    policies = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [GROUP], "apiVersions": ["v1"], "operations": ["*"], "resources": ["hooks"]}
    constraints = {"resourceRules": [rule], "matchPolicy": "Equivalent"}
    checks = [{"expression": "object.spec.host == 'h'", "message": "not h"}]
    spec = {"matchConstraints": constraints, "validations": checks}
    await client.post(f"{policies}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    await client.post(
        f"{policies}/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": binding}
    )
    await client.server.registry.watch_cache.fresh()
    refused = await client.post(V2, hook("a", "v2", endpoint={"host": "i"}))
    assert (refused.status, refused.body["message"].endswith("not h")) == (422, True)
    assert (await client.post(V2, hook("a", "v2", endpoint={"host": "h"}))).status == 201


# --- watches


async def test_watches_select_and_deliver_in_their_version(client, hooks):
    await client.post(V1, hook("a", host="h"))
    hooks.requests.clear()
    query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion=0"
    watches = [client.watch(f"{V1}?{query}&fieldSelector=spec.host%3Dh") for _ in range(2)]
    async with watches[0] as first, watches[1] as second:
        assert [(await anext(watch))["object"]["spec"]["host"] for watch in (first, second)] == ["h", "h"]
        await client.patch(f"{V2}/a", {"spec": {"endpoint": {"host": "i"}}})
        gone = [await anext(watch) for watch in (first, second)]
    assert [event["type"] for event in gone] == ["DELETED", "DELETED"]
    assert gone[0]["object"]["apiVersion"] == f"{GROUP}/v1"
    # For the manager of the other version, before and after the change, and once for all watches.
    assert hooks.requests == [(f"{GROUP}/v1", ["a"])] * 3


async def test_conversion_requests_and_failures_are_counted(client, hooks):
    await client.post(V1, hook("a", host="h"))
    hooks.mode = "failed"
    await client.get(f"{V1}/a")
    text = (await client.get("/metrics")).data.decode()
    malformed = 'failure_type="conversion_webhook_malformed_response_failure",result="failure"'
    assert f"apiserver_conversion_webhook_request_total{{{malformed}}} 1" in text
    assert 'apiserver_conversion_webhook_request_total{failure_type="",result="success"} 2' in text
    assert "apiserver_crd_conversion_webhook_duration_seconds_count" in text


async def test_conversion_reviews_are_limited_in_objects(client, hooks):
    for number in range(120):
        await client.post(V2, hook(f"a{number}", "v2", endpoint={"host": "h"}))
    assert len((await client.get(V1)).body["items"]) == 120
    assert [len(names) for _, names in hooks.requests] == [100, 20]
