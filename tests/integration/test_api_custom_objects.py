"""Requests about custom objects, each with the response of kube-apiserver 1.36.3."""

import asyncio

import pytest

from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition, version

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "s": TEXT,
                "n": TEXT | {"nullable": True},
                "l": {"type": "array", "items": TEXT},
                "size": NUMBER,
                "emb": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "keyed": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT}},
                },
            },
        },
        "status": {"type": "object", "properties": {"s": TEXT, "size": NUMBER, "selector": TEXT}},
    },
}
SCALE = {
    "specReplicasPath": ".spec.size",
    "statusReplicasPath": ".status.size",
    "labelSelectorPath": ".status.selector",
}
WIDGET = definition(version(schema=SCHEMA, subresources={"status": {}, "scale": SCALE}))
MODIFIED = (
    'Operation cannot be fulfilled on widgets.example.com "w": '
    "the object has been modified; please apply your changes to the latest version and try again"
)
UNCONDITIONAL = (
    'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: '
    "must be specified for an update"
)
PREFER = "to avoid accidental conflicts with other finalizer writers"


def widget(spec=None, **metadata):
    head = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"} | metadata}
    return head if spec is None else head | {"spec": spec}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await define(client, WIDGET)
        yield client


def warnings(answer):
    return [value for name, value in answer.headers.items() if name.lower() == "warning"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"size": 2.5},
            '[spec.size: Invalid value: "number": spec.size in body must be of type integer: "number", '
            '<nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.size, '
            ".spec.size: Invalid value: 0: .spec.size accessor error: 2.5 is of the type float64, expected int64]",
            id="a fraction for a scale",
        ),
        pytest.param(
            {"size": 2.0},
            ".spec.size: Invalid value: 0: .spec.size accessor error: 2 is of the type float64, expected int64",
            id="a float for a scale",
        ),
        pytest.param(
            {"size": "x"},
            '[spec.size: Invalid value: "string": spec.size in body must be of type integer: "string", '
            ".spec.size: Invalid value: 0: .spec.size accessor error: x is of the type string, expected int64]",
            id="a text for a scale",
        ),
        pytest.param(
            {"size": {"a": None}},
            '[spec.size: Invalid value: "object": spec.size in body must be of type integer: "object", '
            ".spec.size: Invalid value: 0: .spec.size accessor error: map[] is of the type "
            "map[string]interface {}, expected int64]",
            id="an object for a scale",
        ),
        pytest.param(
            {"size": -1},
            ".spec.size: Invalid value: -1: should be a non-negative integer",
            id="a negative scale",
        ),
        pytest.param(
            {"size": 3000000000},
            ".spec.size: Invalid value: 3000000000: should be less than or equal to 2147483647",
            id="a large scale",
        ),
        pytest.param(
            {"emb": {}},
            "[spec.emb.apiVersion: Required value, spec.emb.kind: Required value]",
            id="an embedded object without its kind",
        ),
    ],
)
async def test_invalid_custom_object_is_refused_on_create(client, spec, message):
    answer = await client.post(WIDGETS, widget(spec))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"] == f'Widget.example.com "w" is invalid: {message}'


@pytest.mark.parametrize(
    ("spec", "kept", "dropped"),
    [
        pytest.param({"s": None, "n": None}, {"n": None}, [], id="not nullable"),
        pytest.param(
            {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "zz": 1}, "yy": 1}},
            {"emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "yy": 1}},
            ["spec.emb.metadata.zz"],
            id="metadata of an embedded object",
        ),
        pytest.param({"zz": 1}, {}, ["spec.zz"], id="an unknown field"),
    ],
)
async def test_unknown_fields_are_pruned_on_create(client, spec, kept, dropped):
    answer = await client.post(WIDGETS, widget(spec))
    assert (answer.status, answer.body["spec"]) == (201, kept)
    assert warnings(answer) == [f'299 - "unknown field \\"{path}\\""' for path in dropped]


async def test_object_in_place_of_string_is_pruned_and_refused(client):
    answer = await client.post(WIDGETS, widget({"s": {"a": 1}, "l": [{"b": 1}]}))
    assert answer.body["message"] == (
        'Widget.example.com "w" is invalid: ['
        'spec.l[0]: Invalid value: "object": spec.l[0] in body must be of type string: "object", '
        'spec.s: Invalid value: "object": spec.s in body must be of type string: "object"]'
    )
    assert warnings(answer) == [
        '299 - "unknown field \\"spec.l[0].b\\""',
        '299 - "unknown field \\"spec.s.a\\""',
    ]


@pytest.mark.parametrize(
    ("finalizers", "expected"),
    [
        pytest.param(["a.b/c", "orphan", "kubernetes"], [], id="valid names"),
        pytest.param(["x"], [f'"x": prefer a domain-qualified finalizer name {PREFER}'], id="a word"),
        pytest.param(
            ["x.y"],
            [f'"x.y": prefer a domain-qualified finalizer name including a path (/) {PREFER}'],
            id="a domain alone",
        ),
    ],
)
async def test_finalizers_without_domain_are_warned_of(client, finalizers, expected):
    quoted = [f"metadata.finalizers: {one}".replace('"', '\\"') for one in expected]
    answer = await client.post(WIDGETS, widget(finalizers=finalizers))
    assert answer.status == 201, answer.body
    assert warnings(answer) == [f'299 - "{text}"' for text in quoted]


async def test_only_new_finalizers_are_warned_of(client):
    await client.post(WIDGETS, widget(finalizers=["x"]))
    same = await client.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})
    more = await client.patch(f"{WIDGETS}/w", {"metadata": {"finalizers": ["x", "y"]}})
    assert (len(warnings(same)), len(warnings(more))) == (0, 1)


async def test_invalid_labels_are_reported_three_times_on_update(client):
    await client.post(WIDGETS, widget())
    answer = await client.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a b": "c"}}})
    assert answer.status == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == ["metadata.labels"] * 3


@pytest.mark.parametrize(
    ("tree", "status", "message"),
    [
        pytest.param(
            {"kind": "Widget", "apiVersion": "apps/v1", "metadata": {"name": "w"}},
            400,
            "the API version in the data (apps/v1) does not match the expected API version (example.com/v1)",
            id="another apiVersion",
        ),
        pytest.param(
            {"kind": "Other", "apiVersion": "example.com/v1", "metadata": {"name": "o"}},
            422,
            'Other.example.com "o" is invalid: kind: Invalid value: "Other": must be Widget',
            id="another kind",
        ),
    ],
)
async def test_body_of_other_kind_is_refused(client, tree, status, message):
    answer = await client.post(WIDGETS, tree)
    assert (answer.status, answer.body["message"]) == (status, message)


# --- subresources


@pytest.mark.parametrize(
    ("resource_version", "status", "message"),
    [
        pytest.param(None, 422, UNCONDITIONAL, id="none"),
        pytest.param("0", 422, UNCONDITIONAL, id="zero"),
        pytest.param("1", 409, MODIFIED, id="an old one"),
        pytest.param("-1", 500, 'strconv.ParseUint: parsing "-1": invalid syntax', id="no number"),
    ],
)
@pytest.mark.parametrize("subresource", ["", "/status"])
async def test_update_needs_current_resource_version(client, subresource, resource_version, status, message):
    tree = (await client.post(WIDGETS, widget({"size": 2}))).body
    tree["metadata"] |= {"resourceVersion": resource_version}
    answer = await client.put(f"{WIDGETS}/w{subresource}", tree)
    assert (answer.status, answer.body["message"]) == (status, message)


@pytest.mark.parametrize(("resource_version", "status"), [(None, 200), ("0", 422), ("1", 409)])
async def test_scale_update_needs_no_resource_version(client, resource_version, status):
    await client.post(WIDGETS, widget({"size": 2}))
    scale = (await client.get(f"{WIDGETS}/w/scale")).body
    scale["metadata"] |= {"resourceVersion": resource_version}
    scale["spec"]["replicas"] = 5
    assert (await client.put(f"{WIDGETS}/w/scale", scale)).status == status


async def test_negative_scale_is_refused_like_object(client):
    await client.post(WIDGETS, widget({"size": 2}))
    answer = await client.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": -3}})
    assert answer.body["message"] == (
        'Widget.example.com "w" is invalid: .spec.size: Invalid value: -3: should be a non-negative integer'
    )


@pytest.mark.parametrize(
    ("written", "causes"),
    [
        pytest.param(
            {"s": 5},
            [("status.s", 'Invalid value: "integer": s in body must be of type string: "integer"')],
            id="a number for a text",
        ),
        pytest.param(
            {"size": -1},
            [(".status.size", "Invalid value: -1: should be a non-negative integer")],
            id="a negative scale",
        ),
        pytest.param(
            {"selector": 4},
            [
                ("status.selector", 'Invalid value: "integer": selector in body must be of type string: "integer"'),
                (
                    ".status.selector",
                    'Invalid value: "": .status.selector accessor error: 4 is of the type int64, expected string',
                ),
            ],
            id="a number for a selector",
        ),
    ],
)  # fmt: skip
async def test_status_is_validated_alone(client, written, causes):
    await client.post(WIDGETS, widget())
    answer = await client.patch(f"{WIDGETS}/w/status", {"status": written})
    assert answer.status == 422
    assert [(cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]] == causes


# --- several versions, and a definition that changes


def object_schema(**properties):
    return {"type": "object", "properties": {"spec": {"type": "object"} | properties}}


OLD = object_schema(properties={"a": TEXT, "old": TEXT, "d": TEXT | {"default": "one"}})
NEW = object_schema(properties={"a": TEXT, "new": TEXT, "e": TEXT | {"default": "two"}}, required=["new"])


@pytest.fixture
async def versions(client):
    """Served in two versions whose schemas differ; v1 is stored."""
    both = [version(schema=OLD), version("v2", schema=NEW, storage=False)]
    await define(client, definition(*both, plural="gadgets", kind="Gadget"))
    return client


def gadget(spec, api_version="v1"):
    head = {"apiVersion": f"{GROUP}/{api_version}", "kind": "Gadget", "metadata": {"name": "g"}}
    return head | {"spec": spec}


def gadgets(api_version):
    return f"/apis/{GROUP}/{api_version}/namespaces/default/gadgets"


async def test_object_is_validated_by_schema_of_its_version_only(versions):
    """A client of the old version does not send a field that the new version requires."""
    assert (await versions.post(gadgets("v1"), gadget({"a": "x", "old": "o"}))).status == 201
    labelled = await versions.patch(f"{gadgets('v1')}/g", {"metadata": {"labels": {"a": "b"}}})
    refused = await versions.patch(f"{gadgets('v2')}/g", {"metadata": {"labels": {"a": "c"}}})
    assert (labelled.status, refused.status) == (200, 422)
    assert refused.body["message"] == 'Gadget.example.com "g" is invalid: spec.new: Required value'


async def test_read_shows_fields_of_requested_version(versions):
    await versions.post(gadgets("v1"), gadget({"a": "x", "old": "o"}))
    new = (await versions.get(f"{gadgets('v2')}/g")).body
    old = (await versions.get(f"{gadgets('v1')}/g")).body
    assert (old["spec"], new["spec"]) == ({"a": "x", "old": "o", "d": "one"}, {"a": "x"})


async def test_field_missing_in_storage_version_is_not_stored(versions):
    created = await versions.post(gadgets("v2"), gadget({"a": "x", "new": "n"}, "v2"))
    assert (created.status, created.body["spec"]) == (201, {"a": "x"})
    listed = (await versions.get(gadgets("v1"))).body["items"]
    assert [one["spec"] for one in listed] == [{"a": "x", "d": "one"}]


async def test_apply_in_other_version_needs_that_version_in_body(versions):
    await versions.patch(f"{gadgets('v1')}/g?fieldManager=a", gadget({"a": "x"}), kind="apply-patch+yaml")
    taken = gadget({"a": "x", "new": "n"}, "v2")
    refused = await versions.patch(f"{gadgets('v2')}/g?fieldManager=b", taken, kind="apply-patch+yaml")
    problem = "failed to convert new object: .spec.new: field not declared in schema"
    assert (refused.status, refused.body["message"]) == (500, problem)


async def test_dry_run_returns_object_as_stored(versions):
    created = await versions.post(f"{gadgets('v2')}?dryRun=All", gadget({"a": "x", "new": "n"}, "v2"))
    await versions.post(gadgets("v2"), gadget({"a": "x", "new": "n"}, "v2"))
    changed = await versions.patch(f"{gadgets('v2')}/g?dryRun=All", {"spec": {"a": "z", "new": "k"}})
    assert (created.body["spec"], changed.body["spec"]) == ({"a": "x"}, {"a": "z"})
    assert changed.body["apiVersion"] == f"{GROUP}/v2"


async def change_schema(client, schema):
    """Serve v1 of the gadgets with another schema."""
    name = f"{DEFINITIONS}/gadgets.{GROUP}"
    answer = await client.patch(
        name, [{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}],
        kind="json-patch+json",
    )  # fmt: skip
    assert answer.status == 200, answer.body


async def test_stored_objects_follow_changed_definition(client):
    await define(client, definition(version(schema=OLD), plural="gadgets", kind="Gadget"))
    await client.post(gadgets("v1"), gadget({"a": "x", "old": "o"}))
    await change_schema(client, NEW)
    shown = await wait_until_spec(client, {"a": "x", "e": "two"})
    listed = (await client.get(gadgets("v1"))).body["items"]
    assert [one["spec"] for one in listed] == [shown["spec"]]
    patched = await client.patch(f"{gadgets('v1')}/g", {"spec": {"new": "n"}})
    assert (patched.status, patched.body["spec"]) == (200, {"a": "x", "e": "two", "new": "n"})
    assert patched.body["metadata"]["generation"] == 2
    unchanged = await client.patch(f"{gadgets('v1')}/g", {"metadata": {"labels": {"a": "b"}}})
    assert unchanged.body["metadata"]["generation"] == 2


async def wait_until_spec(client, spec):
    async with asyncio.timeout(WAIT_TIMEOUT):
        while True:
            shown = (await client.get(f"{gadgets('v1')}/g")).body
            if shown["spec"] == spec:
                return shown


async def test_missing_resource_of_custom_group_is_404_page(client):
    """In a built-in group the error is about the missing resource."""
    for path in (f"/apis/{GROUP}/v1/odds", f"/apis/{GROUP}/v9/namespaces/default/odds"):
        answer = await client.get(path)
        assert (answer.status, answer.data) == (404, b"404 page not found\n")
    for path in ("/apis/apps/v1/odds", "/apis/apps/v9/namespaces/default/odds"):
        answer = await client.get(path)
        message = "the server could not find the requested resource"
        assert (answer.status, answer.body["message"]) == (404, message)
