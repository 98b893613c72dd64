"""Preconditions and identity of objects in writes and deletions, compared with a real kube-apiserver 1.36."""

import pytest

from tests.support.server import apiserver

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/api/v1/namespaces/default/events"
NO_NAME = "the name of the object (x based on URL) was undeterminable: name must be provided"
IMMUTABLE = 'ConfigMap "x" is invalid: metadata.{}: Invalid value: {}: field is immutable'
CHANGED = (
    'Operation cannot be fulfilled on configmaps "x": the object has been modified; please apply your changes to the '
    "latest version and try again"
)
NO_VERSION = 'strconv.ParseUint: parsing "{}": invalid syntax'
LONG_AGO = "2026-01-01T00:00:00Z"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(MAPS, {"metadata": {"name": "x"}})
        yield client


def status_and_message(answer):
    return answer.status, answer.body.get("message", "") if answer.body["kind"] == "Status" else ""


def object_with_name(name, **fields):
    return {"metadata": {"name": name, **fields}}


@pytest.mark.parametrize(
    ("query", "metadata", "expected"),
    [
        ("", {"name": "y", "resourceVersion": "abc"}, (201, "")),
        ("", {"name": "y", "resourceVersion": "0"}, (201, "")),
        (
            "",
            {"name": "y", "resourceVersion": "77"},
            (500, "resourceVersion should not be set on objects to be created"),
        ),
        ("?dryRun=All", {"name": "y", "resourceVersion": "77"}, (201, "")),
        ("?dryRun=All", {"name": "y", "resourceVersion": "abc"}, (201, "")),
    ],
)
async def test_new_object_has_no_resource_version(client, query, metadata, expected):
    assert status_and_message(await client.post(MAPS + query, {"metadata": metadata})) == expected


async def test_invalid_new_object_is_reported_before_resource_version(client):
    refused = await client.post(MAPS, object_with_name("-bad", resourceVersion="77"))
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "x", "resourceVersion": "abc"}, (500, NO_VERSION.format("abc"))),
        ({"name": "x", "resourceVersion": "-1"}, (500, NO_VERSION.format("-1"))),
        ({"name": "x", "resourceVersion": "0"}, (200, "")),
        ({"name": "x", "resourceVersion": "01"}, (409, CHANGED)),
        ({}, (400, NO_NAME)),
        ({"name": ""}, (400, NO_NAME)),
        ({"name": "z"}, (400, "the name of the object (z) does not match the name on the URL (x)")),
        (
            {"name": "x", "deletionTimestamp": LONG_AGO},
            (422, IMMUTABLE.format("deletionTimestamp", f'"{LONG_AGO}"')),
        ),
        (
            {"name": "x", "deletionGracePeriodSeconds": 3},
            (422, IMMUTABLE.format("deletionGracePeriodSeconds", 3)),
        ),
        ({"name": "x", "creationTimestamp": LONG_AGO, "generation": 7, "selfLink": "/x"}, (200, "")),
    ],
)
async def test_update_body_must_match_path(client, metadata, expected):
    assert status_and_message(await client.put(f"{MAPS}/x", {"metadata": metadata})) == expected


async def test_update_with_other_uid_conflicts(client):
    refused = await client.put(f"{MAPS}/x", object_with_name("x", uid="abc"))
    assert refused.status == 409
    assert "Precondition failed: UID in precondition: abc, UID in object meta: " in refused.body["message"]


@pytest.mark.parametrize(
    "path", ["namespaces/default", "namespaces/default/status", "namespaces/default/finalize"]
)
async def test_update_needs_name_in_every_resource(client, path):
    refused = await client.put(f"/api/v1/{path}", {})
    assert status_and_message(refused) == (400, NO_NAME.replace("(x ", "(default "))


async def test_missing_name_is_reported_before_missing_object(client):
    refused = await client.put(f"{MAPS}/nope", {})
    assert status_and_message(refused) == (400, NO_NAME.replace("(x ", "(nope "))


@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        ("merge-patch+json", {"metadata": {"uid": "abc"}}, (422, IMMUTABLE.format("uid", '"abc"'))),
        ("merge-patch+json", {"metadata": {"uid": ""}}, (200, "")),
        ("merge-patch+json", {"metadata": {"name": None}}, (400, NO_NAME)),
        ("strategic-merge-patch+json", {"metadata": {"name": None}}, (400, NO_NAME)),
        ("json-patch+json", [{"op": "remove", "path": "/metadata"}], (400, NO_NAME)),
        ("merge-patch+json", {"metadata": {"resourceVersion": "abc"}}, (500, NO_VERSION.format("abc"))),
        ("json-patch+json", [{"op": "remove", "path": "/kind"}], (200, "")),
        ("strategic-merge-patch+json", {"kind": "Pod", "apiVersion": None}, (200, "")),
        ("merge-patch+json", {"apiVersion": None}, (400, NO_NAME)),
    ],
)
async def test_patch_cannot_change_identity(client, kind, patch, expected):
    assert status_and_message(await client.patch(f"{MAPS}/x", patch, kind=kind)) == expected


async def test_patched_object_without_api_version_is_decoded_as_upstream_type(client):
    answer = await client.patch(f"{MAPS}/x", {"apiVersion": None})
    assert answer.headers["Warning"] == '299 - "unknown field \\"metadata\\""'


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ({"kind": "Pod"}, "converting (v1.Pod) to (core.ConfigMap): unknown conversion"),
        (
            {"kind": "Foo"},
            'no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
        (
            {"kind": "Foo", "apiVersion": None},
            'no kind "Foo" is registered for the internal version of group "" in scheme "pkg/runtime/scheme.go:111"',
        ),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        (
            {"kind": 3},
            (
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of "
                "type string"
            ),
        ),
    ],
)
async def test_patch_cannot_change_kind(client, patch, problem):
    refused = await client.patch(f"{MAPS}/x", patch)
    (cause,) = refused.body["details"]["causes"]
    assert (refused.status, cause["field"]) == (422, "patch")
    assert cause["message"].endswith(f": {problem}")


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (
            {"name": "n", "uid": "u"},
            (
                409,
                (
                    'Operation cannot be fulfilled on configmaps "n": uid mismatch: the provided object specified uid u, '
                    "and no existing object was found"
                ),
            ),
        ),
        ({"name": "n", "resourceVersion": "5"}, (201, "")),
        ({"name": "n", "resourceVersion": "x"}, (500, NO_VERSION.format("x"))),
        ({}, (400, NO_NAME.replace("(x ", "(n "))),
    ],
)
async def test_apply_with_uid_of_missing_object_conflicts(client, metadata, expected):
    wanted = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    answer = await client.patch(f"{MAPS}/n?fieldManager=a", wanted, kind="apply-patch+yaml")
    assert status_and_message(answer) == expected


async def test_update_with_uid_of_missing_object_conflicts(client):
    refused = await client.put(f"{LEASES}/l", object_with_name("l", uid="u"))
    assert (refused.status, refused.body["message"]) == (
        409,
        (
            'Operation cannot be fulfilled on leases.coordination.k8s.io "l": StorageError: invalid object, Code: 4, '
            "Key: /registry/leases/default/l, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            "precondition: u, UID in object meta: "
        ),
    )
    refused = await client.put(f"{LEASES}/l", object_with_name("l", resourceVersion="y"))
    assert status_and_message(refused) == (500, NO_VERSION.format("y"))
    assert (
        await client.put(f"{LEASES}/l?dryRun=All", object_with_name("l", resourceVersion="5"))
    ).status == 201
    assert (await client.put(f"{LEASES}/l", object_with_name("l", resourceVersion="5"))).status == 201


# --- deletions

NO_TYPE = "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go {}"
TYPE_META = (
    'value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
    '"json:\\"kind,omitempty\\"" }'
)
UNKNOWN = 'no kind "{}" is registered for version "{}" in scheme "pkg/runtime/scheme.go:111"'
UNCONVERTED = "converting (v1.{}) to (v1.DeleteOptions): unknown conversion"


@pytest.mark.parametrize("path", [f"{MAPS}/x", f"{MAPS}/nope", MAPS])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "Pod", "apiVersion": "v1"}, UNKNOWN.format("Pod", "v1")),
        ({"kind": "Pod"}, UNKNOWN.format("Pod", "meta.k8s.io/v1")),
        ({"kind": "deleteoptions", "apiVersion": "v1"}, UNKNOWN.format("deleteoptions", "v1")),
        ({"kind": "ListOptions", "apiVersion": "v1"}, UNKNOWN.format("ListOptions", "v1")),
        ({"kind": "X", "apiVersion": "apps/v1"}, UNKNOWN.format("X", "apps/v1")),
        ({"kind": "Status", "apiVersion": "v1"}, UNCONVERTED.format("Status")),
        ({"kind": "CreateOptions", "apiVersion": "v1"}, UNCONVERTED.format("CreateOptions")),
        ({"kind": "ListOptions", "apiVersion": "meta.k8s.io/v1"}, UNCONVERTED.format("ListOptions")),
        ({"kind": "DeleteOptions", "apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
        ({"kind": 3}, NO_TYPE.format("number", "struct field .kind of type string")),
        ([], NO_TYPE.format("array", TYPE_META)),
        ("a", NO_TYPE.format("string", TYPE_META)),
        (True, NO_TYPE.format("bool", TYPE_META)),
    ],
)
async def test_delete_body_is_delete_options(client, path, body, message):
    assert status_and_message(await client.delete(path, body)) == (400, message)
    assert (await client.get(f"{MAPS}/x")).status == 200


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "DeleteOptions", "apiVersion": "foo/v1"},
        {"kind": "DeleteOptions"},
        {"apiVersion": "apps/v1"},
        {"kind": "", "apiVersion": None},
        b"null",
    ],
)
async def test_delete_options_may_be_of_any_group(client, body):
    assert (await client.delete(f"{MAPS}/x", body)).status == 200
    assert (await client.get(f"{MAPS}/x")).status == 404


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("?orphanDependents=false", 202),
        ("?orphanDependents=true", 200),
        ("", 200),
        ("?propagationPolicy=Foreground", 200),
    ],
)
async def test_pending_deletion_is_accepted_with_orphan_dependents(client, query, code):
    await client.post(MAPS, object_with_name("kept", finalizers=["a.b/c"]))
    first, again = [await client.delete(f"{MAPS}/kept{query}") for _ in range(2)]
    assert (first.status, again.status) == (code, code)
    assert (await client.delete(f"{MAPS}/x?dryRun=All&orphanDependents=false")).status == 200


@pytest.mark.parametrize("policy", ["Foreground", "Background", "Orphan"])
async def test_events_have_no_dependents(client, policy):
    await client.post(EVENTS, object_with_name("e") | {"involvedObject": {"namespace": "default"}})
    assert (await client.delete(f"{EVENTS}/e?propagationPolicy={policy}")).body["kind"] == "Status"
    assert (await client.get(f"{EVENTS}/e")).status == 404


async def test_namespace_is_deleted_with_foreground_policy(client):
    await client.post("/api/v1/namespaces", object_with_name("n"))
    deleted = await client.delete("/api/v1/namespaces/n?orphanDependents=false")
    assert (deleted.status, deleted.body["metadata"]["finalizers"]) == (202, ["foregroundDeletion"])


NO_OBJECT = (
    ' "" is invalid: patch: Invalid value: "[]": couldn\'t get version/kind; json parse error: json: cannot unmarshal '
    'array into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
    '"json:\\"kind,omitempty\\"" }'
)
REJECTED = "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(("value", "message"), [([], NO_OBJECT), (5, REJECTED), (None, REJECTED)])
async def test_json_patch_must_leave_an_object(client, value, message):
    patch = [{"op": "replace", "path": "", "value": value}]
    answer = await client.patch(f"{MAPS}/x", patch, kind="json-patch+json")
    assert status_and_message(answer) == (422, message)
    assert (await client.get(f"{MAPS}/x")).status == 200


async def test_deletion_is_admitted_after_preconditions(client):
    missing = {"preconditions": {"uid": "other"}}
    refused = await client.delete("/api/v1/namespaces/default", missing)
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    refused = await client.delete("/api/v1/namespaces/default")
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")


async def test_deletion_of_a_client_is_owned_in_a_create_by_update(client):
    metadata = {"name": "l", "deletionTimestamp": LONG_AGO, "deletionGracePeriodSeconds": 3}
    created = await client.put(f"{LEASES}/l", {"metadata": metadata, "spec": {"holderIdentity": "a"}})
    (manager,) = created.body["metadata"]["managedFields"]
    assert created.body["metadata"].keys().isdisjoint({"deletionTimestamp", "deletionGracePeriodSeconds"})
    assert manager["fieldsV1"]["f:metadata"] == {
        "f:deletionGracePeriodSeconds": {},
        "f:deletionTimestamp": {},
    }


async def test_object_that_was_created_as_deleted_is_deleted_at_once_until_1_36():
    metadata = {"name": "l", "deletionTimestamp": LONG_AGO, "deletionGracePeriodSeconds": 3}
    async with apiserver.running("--kubernetes-version=1.36") as client:
        created = await client.put(f"{LEASES}/l", {"metadata": metadata, "spec": {}})
        assert created.body["metadata"]["deletionGracePeriodSeconds"] == 3
        assert (await client.delete(f"{LEASES}/l")).status == 200
        assert (await client.get(f"{LEASES}/l")).status == 404


@pytest.mark.parametrize(
    ("path", "api_version", "kind", "expected"),
    [
        ("/apis/apps/v1/namespaces/default/deployments", "apps/v1beta1", "Deployment", "apps/v1"),
        ("/apis/apps/v1/namespaces/default/deployments", "extensions/v1beta1", "Deployment", "apps/v1"),
        ("/api/v1/namespaces/default/events", "events.k8s.io/v1", "Event", "v1"),
    ],
)
async def test_other_version_of_kind_does_not_match_expected_one(client, path, api_version, kind, expected):
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    answer = await client.post(path, body)
    mismatch = f"does not match the expected API version ({expected})"
    assert (answer.status, answer.body["message"]) == (
        400,
        f"the API version in the data ({api_version}) {mismatch}",
    )
