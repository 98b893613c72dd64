"""Custom resources are served like built-in ones while their definition exists."""

import asyncio

import pytest
import yaml

from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.server import apiserver
from tests.support.server.definitions import (
    DEFINITIONS,
    GROUP,
    WIDGETS,
    conditions,
    define,
    definition,
    until,
    version,
)

PROTOBUF = "application/vnd.kubernetes.protobuf"
SIZE = {"type": "integer", "minimum": 1, "default": 3}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": SIZE,
                "color": {"type": "string", "description": "What it looks like."},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {
                        "type": "object",
                        "required": ["k"],
                        "properties": {"k": {"type": "string"}, "v": {"type": "string"}},
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
        },
    },
}
SCALE = {
    "specReplicasPath": ".spec.size",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
WIDGET = definition(
    version(
        schema=SCHEMA,
        subresources={"status": {}, "scale": SCALE},
        additionalPrinterColumns=[{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        selectableFields=[{"jsonPath": ".spec.color"}],
    )
)


def widget(name="w", **spec):
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


@pytest.fixture
async def widgets(client):
    await define(client, WIDGET)
    return client


# --- what comes with a definition


async def test_new_definition_has_accepted_names(client):
    tree = await define(client, WIDGET)
    assert conditions(tree) == {"NamesAccepted": "True", "Established": "True"}
    assert tree["status"]["acceptedNames"]["plural"] == "widgets"


async def test_custom_kind_is_in_discovery(widgets):
    group = (await widgets.get(f"/apis/{GROUP}")).body
    assert group["preferredVersion"]["version"] == "v1"
    listed = (await widgets.get(f"/apis/{GROUP}/v1")).body["resources"]
    assert [row["name"] for row in listed] == ["widgets", "widgets/status", "widgets/scale"]
    assert GROUP in [one["name"] for one in (await widgets.get("/apis")).body["groups"]]


async def test_custom_kind_is_in_openapi(widgets):
    document = (await widgets.get(f"/openapi/v3/apis/{GROUP}/v1")).body
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["properties"]["spec"]["properties"]["color"]["description"] == "What it looks like."
    index = (await widgets.get("/openapi/v3")).body["paths"]
    assert f"apis/{GROUP}/v1" in index


async def test_second_definition_does_not_get_names_in_use(widgets):
    other = definition(plural="gadgets", kind="Widget")
    await widgets.post(DEFINITIONS, other)
    tree = await until(widgets, f"gadgets.{GROUP}", lambda seen: "NamesAccepted" in conditions(seen))
    assert conditions(tree) == {"NamesAccepted": "False", "Established": "False"}
    assert (await widgets.get(f"/apis/{GROUP}/v1/gadgets")).status == 404


async def test_released_names_are_accepted_for_waiting_definition(widgets):
    await widgets.post(DEFINITIONS, definition(plural="gadgets", kind="Widget"))
    await until(widgets, f"gadgets.{GROUP}", lambda seen: "NamesAccepted" in conditions(seen))
    await widgets.delete(f"{DEFINITIONS}/widgets.{GROUP}")
    await until(widgets, f"gadgets.{GROUP}", lambda seen: conditions(seen).get("Established") == "True")
    assert (await widgets.get(f"/apis/{GROUP}/v1/gadgets")).status == 200


# --- its objects


async def test_custom_objects_are_defaulted_and_pruned(widgets):
    answer = await widgets.post(WIDGETS, widget(color="red", unknown=1))
    assert answer.status == 201
    assert answer.body["spec"] == {"size": 3, "color": "red"}
    assert 'unknown field "spec.unknown"' in answer.headers["Warning"].replace("\\", "")


async def test_custom_object_violating_schema_is_refused(widgets):
    answer = await widgets.post(WIDGETS, widget(size=0))
    assert answer.status == 422
    assert answer.body["message"] == (
        f'Widget.{GROUP} "w" is invalid: spec.size: Invalid value: 0: '
        "spec.size in body should be greater than or equal to 1"
    )


@pytest.mark.parametrize(
    ("sent", "code", "problem"),
    [
        pytest.param(
            widget() | {"apiVersion": f"{GROUP}/v2"},
            400,
            f"the API version in the data ({GROUP}/v2) does not match the expected API version ({GROUP}/v1)",
            id="another version",
        ),
        pytest.param(
            widget() | {"kind": "Gear"}, 422, 'kind: Invalid value: "Gear": must be Widget', id="kind"
        ),
        pytest.param(widget("UP"), 422, "a lowercase RFC 1123 subdomain", id="name"),
    ],
)
async def test_custom_object_of_other_kind_is_refused(widgets, sent, code, problem):
    answer = await widgets.post(WIDGETS, sent)
    assert answer.status == code
    assert problem in answer.body["message"]


async def test_generation_counts_changes_except_status(widgets):
    assert (await widgets.post(WIDGETS, widget())).body["metadata"]["generation"] == 1
    changed = await widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 4}, "status": {"replicas": 9}})
    assert changed.body["metadata"]["generation"] == 2
    assert "status" not in changed.body
    patched = await widgets.patch(f"{WIDGETS}/w/status", {"status": {"replicas": 4}, "spec": {"size": 9}})
    assert patched.body["metadata"]["generation"] == 2
    assert (patched.body["status"], patched.body["spec"]["size"]) == ({"replicas": 4}, 4)


async def test_scale_subresource_uses_paths_of_definition(widgets):
    await widgets.post(WIDGETS, widget(size=2))
    await widgets.patch(f"{WIDGETS}/w/status", {"status": {"replicas": 1, "selector": "a=b"}})
    scale = (await widgets.get(f"{WIDGETS}/w/scale")).body
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "a=b"})
    await widgets.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 7}})
    shown = (await widgets.get(f"{WIDGETS}/w")).body
    assert (shown["spec"]["size"], shown["metadata"]["generation"]) == (7, 2)


async def test_applied_map_lists_are_merged_by_key(widgets):
    await widgets.post(WIDGETS, widget(items=[{"k": "a", "v": "1"}]))
    applied = await widgets.patch(
        f"{WIDGETS}/w?fieldManager=m&force=true",
        widget(items=[{"k": "b", "v": "2"}]),
        kind="apply-patch+yaml",
    )
    assert applied.body["spec"]["items"] == [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}]


async def test_strategic_merge_patch_is_unsupported(widgets):
    await widgets.post(WIDGETS, widget())
    answer = await widgets.patch(f"{WIDGETS}/w", {"spec": {}}, kind="strategic-merge-patch+json")
    assert answer.status == 415
    assert "application/json-patch+json, application/merge-patch+json" in answer.body["message"]


async def test_table_has_columns_of_definition(widgets):
    await widgets.post(WIDGETS, widget(size=5))
    table = (await widgets.get(WIDGETS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 5]


async def test_field_selectors_use_selectable_fields(widgets):
    await widgets.post(WIDGETS, widget("r", color="red"))
    await widgets.post(WIDGETS, widget("b", color="blue"))
    items = (await widgets.get(f"{WIDGETS}?fieldSelector=spec.color%3Dblue")).body["items"]
    assert [one["metadata"]["name"] for one in items] == ["b"]
    refused = await widgets.get(f"{WIDGETS}?fieldSelector=spec.size%3D1")
    assert (refused.status, refused.body["message"]) == (400, "field label not supported: spec.size")


# --- versions


async def test_objects_are_served_in_every_version(client):
    old = version("v1beta1", storage=False, deprecated=True, deprecationWarning="old widget")
    await define(client, definition(old, version("v1")))
    path = WIDGETS.replace("/v1/", "/v1beta1/")
    created = await client.post(path, widget(anything=1) | {"apiVersion": f"{GROUP}/v1beta1"})
    assert created.body["apiVersion"] == f"{GROUP}/v1beta1"
    assert "old widget" in created.headers["Warning"]
    assert (await client.get(f"{WIDGETS}/w")).body["apiVersion"] == f"{GROUP}/v1"


async def test_fields_have_owners_across_versions(client):
    await define(client, definition(version("v1beta1", storage=False), version("v1")))
    old = WIDGETS.replace("/v1/", "/v1beta1/")
    first = widget(a=1) | {"apiVersion": f"{GROUP}/v1beta1"}
    await client.patch(f"{old}/w?fieldManager=one", first, kind="apply-patch+yaml")
    answer = await client.patch(f"{WIDGETS}/w?fieldManager=two", widget(a=2), kind="apply-patch+yaml")
    assert answer.status == 409
    assert 'conflict with "one": .spec.a' in answer.body["message"]
    taken = await client.patch(
        f"{WIDGETS}/w?fieldManager=two&force=true", widget(a=2, b=3), kind="apply-patch+yaml"
    )
    owners = {one["manager"]: one["apiVersion"] for one in taken.body["metadata"]["managedFields"]}
    assert owners["two"] == f"{GROUP}/v1"


async def test_webhook_converted_versions_are_served(client):
    webhook = {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1"]}
    conversion = {"strategy": "Webhook", "webhook": webhook}
    await define(client, definition(version("v1beta1", storage=False), version("v1"), conversion=conversion))
    group = (await client.get(f"/apis/{GROUP}")).body
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1"]


async def test_rules_are_evaluated_and_reported(client):
    size = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}
    spec = {"type": "object", "properties": {"size": size}}
    schema = {"type": "object", "properties": {"spec": spec}}
    await define(client, definition(version(schema=schema)))
    refused = await client.post(WIDGETS, widget(size=1))
    assert refused.status == 422
    assert refused.body["message"].endswith("spec.size: Invalid value: 1: failed rule: self > 1")
    assert (await client.post(WIDGETS, widget(size=2))).status == 201


# --- changes and ends


async def test_new_schema_applies_when_served(widgets):
    served = asyncio.Event()
    widgets.server.catalog.on_change.append(served.set)
    stored = (await widgets.get(f"{DEFINITIONS}/widgets.{GROUP}")).body
    schema = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["weight"] = {"type": "integer", "default": 7}
    changed = await widgets.put(f"{DEFINITIONS}/widgets.{GROUP}", stored)
    assert changed.status == 200, changed.body
    await asyncio.wait_for(served.wait(), WAIT_TIMEOUT)
    assert (await widgets.post(WIDGETS, widget())).body["spec"] == {"size": 3, "weight": 7}


async def test_deleted_definition_deletes_its_objects(widgets):
    await widgets.post(WIDGETS, widget())
    deleted = await widgets.delete(f"{DEFINITIONS}/widgets.{GROUP}")
    assert "deletionTimestamp" in deleted.body["metadata"]
    async with widgets.watch(f"{DEFINITIONS}?watch=1&resourceVersion=0") as events:
        async for event in events:
            if event["type"] == "DELETED":
                break
    assert (await widgets.get(WIDGETS)).status == 404
    assert (await widgets.get(f"/apis/{GROUP}")).status == 404
    await define(widgets, WIDGET)
    assert (await widgets.get(WIDGETS)).body["items"] == []


# --- how they are sent


async def test_definition_without_its_stored_version_can_be_deleted(client):
    await define(client, WIDGET)
    name = WIDGET["metadata"]["name"]
    stored = (await client.get(f"{DEFINITIONS}/{name}")).body
    stored["status"]["storedVersions"] = ["v0", "v1"]
    assert (await client.put(f"{DEFINITIONS}/{name}/status", stored)).status == 200
    async with client.watch(f"{DEFINITIONS}?watch=1") as events:
        assert (await client.delete(f"{DEFINITIONS}/{name}")).status == 200
        async for event in events:
            if event["type"] == "DELETED":
                break
    assert (await client.get(f"{DEFINITIONS}/{name}")).status == 404


async def test_multiple_of_zero_is_accepted_in_definition_and_refuses_values(client):
    schema = {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0}}}
    await define(client, definition(version(schema=schema)))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    assert (await client.post(WIDGETS, widget)).status == 201
    refused = await client.post(WIDGETS, widget | {"a": 1})
    problem = "a: Invalid value: 0: factor MultipleOf declared for a must be positive: 0"
    assert (refused.status, refused.body["message"]) == (422, f'Widget.example.com "w" is invalid: {problem}')


@pytest.mark.parametrize(
    ("field", "value", "stored"),
    [
        pytest.param("2.0", 201, b'"size":2', id="a whole number with a point"),
        pytest.param("1e1", 201, b'"size":10', id="a whole number with an exponent"),
        pytest.param("2.5", 422, b"of type integer", id="a fraction"),
        pytest.param("null", 201, b'"size":3', id="null with a default"),
    ],
)
async def test_numbers_are_written_as_upstream_does(client, field, value, stored):
    await define(client, definition(version(schema=SCHEMA)))  # a resource with scale takes no floats there
    body = f'{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"size":{field}}}}}'
    answer = await client.post(WIDGETS, body.encode())
    assert answer.status == value
    assert stored in answer.data


@pytest.mark.parametrize("items", ["5", "[5]", '"x"', "{}", "[null]", '[{"k":2.0}]', '[{"k":1e3},{"k":1e3}]'])
@pytest.mark.parametrize("is_applied", [False, True])
async def test_non_list_in_place_of_map_list_is_refused(widgets, items, is_applied):
    body = f'{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"items":{items}}}}}'
    if is_applied:
        answer = await widgets.patch(f"{WIDGETS}/a?fieldManager=m", body.encode(), kind="apply-patch+yaml")
    else:
        answer = await widgets.post(WIDGETS, body.encode())
    # An apply that cannot be typed is a 500 of kube-apiserver, too.
    status, start = (422, 'Widget.example.com "a" is invalid: ')
    if is_applied:
        status, start = 500, "failed to create typed patch object (/a; example.com/v1, Kind=Widget): "
    assert (answer.status, answer.body["message"][: len(start)]) == (status, start)


async def test_each_list_item_has_kind(widgets):
    await widgets.post(WIDGETS, widget("a"))
    await widgets.post(WIDGETS, widget("b"))
    for accept in ("application/json", "application/yaml"):
        answer = await widgets.get(WIDGETS, Accept=accept)
        listed = yaml.safe_load(answer.data)
        assert listed["metadata"]["continue"] == ""
        assert {(one["apiVersion"], one["kind"]) for one in listed["items"]} == {(f"{GROUP}/v1", "Widget")}


@pytest.mark.parametrize(
    ("accept", "status", "form"),
    [
        pytest.param(PROTOBUF, 406, PROTOBUF, id="no message, but the error is one"),
        pytest.param(f"{PROTOBUF}, application/json", 200, "application/json", id="JSON instead"),
        pytest.param(
            f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1", 200, PROTOBUF, id="metadata alone"
        ),
    ],
)
async def test_custom_objects_have_no_protobuf(widgets, accept, status, form):
    await widgets.post(WIDGETS, widget())
    answer = await widgets.get(f"{WIDGETS}/w", Accept=accept)
    assert (answer.status, answer.headers["Content-Type"]) == (status, form)


async def test_scale_of_custom_object_has_protobuf(widgets):
    await widgets.post(WIDGETS, widget())
    answer = await widgets.get(f"{WIDGETS}/w/scale", Accept=PROTOBUF)
    assert answer.data.startswith(b"k8s\x00")
