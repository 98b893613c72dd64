"""Responses that custom kinds produce in code of their own, compared with a real kube-apiserver 1.36."""

import pytest

from tests.integration.test_api_custom_objects import SCHEMA, WIDGET, widget
from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition, version


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await define(client, WIDGET)
        yield client


async def test_integral_float_in_metadata_is_accepted(client):
    created = await client.post(
        WIDGETS, b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}'
    )
    assert created.status == 201
    patch = b'{"metadata":{"generation":1e3,"labels":{"a":"b"}}}'
    merge = "application/merge-patch+json"
    assert (await client.send("PATCH", f"{WIDGETS}/w", patch, Content_Type=merge)).status == 200
    put = b'{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","generation":2.0,"resourceVersion":"%d"}}'
    version = int((await client.get(f"{WIDGETS}/w")).body["metadata"]["resourceVersion"])
    assert (await client.put(f"{WIDGETS}/w", put % version)).status == 200


async def test_refused_patch_shows_sorted_fields(client):
    await client.post(WIDGETS, widget({"s": "x", "l": ["y"]}))
    patch = b'[{"op":"add","path":"/kind","value":{}}]'
    refused = await client.send("PATCH", f"{WIDGETS}/w", patch, Content_Type="application/json-patch+json")
    shown = refused.body["details"]["causes"][0]["message"]
    places = [
        shown.index(rf"\"{name}\"")
        for name in ("creationTimestamp", "generation", "name", "uid", "spec", "l", "s")
    ]
    assert places == sorted(places)


async def test_subresource_with_wrong_method_names_verb(client):
    await client.post(WIDGETS, widget())
    refused = await client.send("DELETE", f"{WIDGETS}/w/status")
    assert (refused.status, refused.body["message"]) == (
        405,
        'delete is not supported on resources of kind "widgets.example.com"',
    )


async def test_deleted_definition_keeps_generation_and_has_no_grace_period(client):
    answer = await client.send("DELETE", f"{DEFINITIONS}/widgets.example.com")
    metadata = answer.body["metadata"]
    assert (metadata["generation"], metadata.get("deletionGracePeriodSeconds")) == (1, None)
    managers = {(entry["manager"], entry.get("subresource")) for entry in metadata["managedFields"]}
    assert ("kube-apiserver", "status") in managers


async def test_version_set_to_null_by_patch_is_shown(client):
    await client.post(WIDGETS, widget())
    patch = [{"op": "copy", "path": "/apiVersion", "from": "/spec"}]
    refused = await client.send("PATCH", f"{WIDGETS}/w", patch, Content_Type="application/json-patch+json")
    assert refused.status == 422
    assert refused.body["message"].endswith(
        ": .apiVersion accessor error: <nil> is of the type <nil>, expected string"
    )


async def test_rules_are_skipped_for_object_without_name():
    async with apiserver.running() as client:
        ruled = SCHEMA | {"x-kubernetes-validations": [{"rule": "has(self.spec)"}]}
        await define(client, definition(version(schema=ruled)))
        refused = await client.post(WIDGETS, {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {}})
        assert refused.body["message"] == (
            'Widget.example.com "" is invalid: [metadata.name: Required value: name or generateName is required, '
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
            "correct the existing errors to complete validation]"
        )


async def test_custom_object_fields_are_sorted_by_name(client):
    answers = [
        await client.post(WIDGETS, widget({"s": "x", "emb": EMBEDDED, "l": []}, finalizers=[FINALIZER]))
    ]
    answers.append(await client.patch(f"{WIDGETS}/w", {"spec": {"keyed": [{"k": "a"}]}}))
    answers.append(
        await client.put(f"{WIDGETS}/w/status", answers[-1].body | {"status": {"size": 1, "s": "y"}})
    )
    answers.append(await client.send("DELETE", f"{WIDGETS}/w"))
    listed = await client.get(WIDGETS)
    for shown in (*(answer.body for answer in answers), listed.body["items"][0]):
        further = [name for name in shown["metadata"] if name not in IDENTITY]
        assert further == sorted(further)
        assert list(shown["metadata"]["managedFields"][0]) == sorted(shown["metadata"]["managedFields"][0])
        assert list(shown["spec"]) == sorted(shown["spec"])
        assert list(shown["spec"]["emb"]) == sorted(EMBEDDED)
        assert list(shown.get("status", {})) == ["s", "size"][: 2 * ("status" in shown)]


EMBEDDED = {"z": 1, "metadata": {"name": "e"}, "kind": "Pod", "apiVersion": "v1"}
FINALIZER = "example.com/f"
IDENTITY = ("name", "namespace", "uid", "resourceVersion")


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("x", "string into Go value of type v1.ObjectMeta"),
        (5, "number into Go value of type v1.ObjectMeta"),
        (["a"], "array into Go value of type v1.ObjectMeta"),
        ({"name": 5}, "number into Go struct field ObjectMeta.name of type string"),
    ],
)
async def test_metadata_is_decoded_before_kind_is_compared(client, metadata, problem):
    answer = await client.post(
        WIDGETS, {"apiVersion": "example.com/v1", "kind": "Other", "metadata": metadata}
    )
    start = 'Other in version "v1" cannot be handled as a Widget: json: cannot unmarshal '
    assert (answer.status, answer.body["message"]) == (400, start + problem)
