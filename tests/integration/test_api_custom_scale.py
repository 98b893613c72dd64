"""Scales of custom objects, each response as a real kube-apiserver 1.36.3 returns it."""

import asyncio

import pytest

from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, GROUP, WIDGETS, define, definition, version

SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
PATH = f"{WIDGETS}/a/scale"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
NO_KIND = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'


@pytest.fixture
async def client():
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    async with apiserver.running() as client:
        await define(client, definition(version(subresources={"scale": paths})))
        widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}}
        created = await client.post(WIDGETS, widget | {"spec": {"replicas": 0}})
        assert created.status == 201, created.body
        yield client


@pytest.mark.parametrize(
    "scale",
    [
        pytest.param(SCALE | {"spec": {"replicas": "1"}}, id="replicas are a text"),
        pytest.param(SCALE | {"kind": "Pod", "apiVersion": "v1"}, id="another kind"),
        pytest.param(SCALE | {"apiVersion": "extensions/v1beta1"}, id="another version"),
    ],
)
async def test_scale_that_cannot_be_decoded_is_refused_without_its_problem(client, scale):
    refused = await client.put(PATH, scale)
    assert (refused.status, refused.body["message"]) == (400, NO_KIND)


async def test_uid_is_precondition_of_update_but_not_of_patch(client):
    wrong = SCALE | {"metadata": {"name": "a", "uid": "1"}, "spec": {"replicas": 2}}
    refused = await client.put(PATH, wrong)
    assert refused.status == 409
    assert refused.body["details"]["kind"] == "widgets"
    assert (
        f"StorageError: invalid object, Code: 4, Key: /registry/{GROUP}/widgets/default/a,"
        in (refused.body["message"])
    )
    patched = await client.patch(PATH, wrong)
    assert (patched.status, patched.body["spec"]) == (200, {"replicas": 2})


NOT_CONVERTED = "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"


@pytest.mark.parametrize(
    ("scale", "query", "status", "message"),
    [
        pytest.param(
            {"spec": {"replicas": 3}},
            "",
            409,
            'Apply failed with 1 conflict: conflict with "maker" using autoscaling/v1: .spec.replicas',
            id="conflict",
        ),
        pytest.param(
            {"spec": {"replicas": 3}},
            "&force=true",
            500,
            f"failed to convert new object (/a; autoscaling/v1, Kind=Scale) {NOT_CONVERTED}",
            id="changed",
        ),
        pytest.param(
            {"spec": {"replicas": 0}},
            "&force=true",
            500,
            f"failed to convert new object (/a; autoscaling/v1, Kind=Scale) {NOT_CONVERTED}",
            id="zero, which is absent in a Scale",
        ),
        pytest.param({}, "", 200, None, id="unchanged"),
    ],
)
async def test_apply_can_only_change_managers(client, scale, query, status, message):
    await client.patch(f"{WIDGETS}/a?fieldManager=maker", {"spec": {"replicas": 7}})
    await client.patch(f"{WIDGETS}/a?fieldManager=maker", {"spec": {"replicas": 0}})
    applied = await client.patch(f"{PATH}?fieldManager=m{query}", SCALE | scale, kind="apply-patch+yaml")
    assert (applied.status, applied.body.get("message")) == (status, message)


async def test_equal_applied_replicas_are_shared(client):
    await client.patch(f"{WIDGETS}/a?fieldManager=maker", {"spec": {"replicas": 7}})
    equal = SCALE | {"spec": {"replicas": 7}}
    applied = await client.patch(f"{PATH}?fieldManager=m", equal, kind="apply-patch+yaml")
    assert (applied.status, applied.body["spec"]) == (200, {"replicas": 7})
    managers = (await client.get(f"{WIDGETS}/a")).body["metadata"]["managedFields"]
    owners = [one["manager"] for one in managers if one["fieldsV1"]["f:spec"].get("f:replicas") is not None]
    assert owners == ["m", "maker"]


async def test_apply_without_managers_is_refused(client):
    await client.patch(f"{WIDGETS}/a", {"metadata": {"managedFields": [{}]}})
    refused = await client.patch(f"{PATH}?fieldManager=m&force=true", SCALE, kind="apply-patch+yaml")
    assert refused.status == 500
    assert refused.body["message"] == (
        "failed to create manager for existing fields: "
        f"failed to convert live object (/; autoscaling/v1, Kind=Scale) {NOT_CONVERTED}"
    )
    refused = await client.patch(f"{PATH}?fieldManager=m", {"kind": "Scale"}, kind="apply-patch+yaml")
    assert (refused.status, refused.body["message"]) == (400, "invalid object type: /, Kind=Scale")


async def test_patch_to_another_kind_names_kind_that_is_not_registered(client):
    refused = await client.patch(PATH, {"kind": "Pod", "apiVersion": "v1"})
    assert refused.status == 422
    assert 'no kind "Pod" is registered for version "v1"' in refused.body["message"]


async def test_table_has_formats_and_no_number_for_absent_replicas(client):
    table = (await client.get(PATH, Accept=TABLE)).body
    columns = [(one["name"], one["type"], one["format"]) for one in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", "name"),
        ("Desired", "integer", ""),
        ("Available", "integer", ""),
        ("Age", "date", ""),
    ]
    assert table["rows"][0]["cells"][:3] == ["a", None, 0]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        pytest.param(f"{WIDGETS}/a", 500, "content is not a list", id="custom object"),
        pytest.param(
            PATH,
            406,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Scale)",
            id="its scale",
        ),
    ],
)
async def test_custom_object_is_not_shown_as_list(client, path, status, message):
    refused = await client.get(path, Accept=LIST)
    assert (refused.status, refused.body["message"]) == (status, message)


@pytest.mark.parametrize(
    ("method", "scale", "status", "message"),
    [
        pytest.param("PATCH", {"spec": {"replicas": 2}}, 200, None, id="patched"),
        pytest.param("PUT", SCALE | {"spec": {"replicas": 2}}, 200, None, id="updated"),
        pytest.param(
            "PATCH",
            {"spec": {}},
            400,
            'the spec replicas field ".spec.replicas" cannot be empty',
            id="unchanged",
        ),
        pytest.param("GET", None, 500, 'the spec replicas field ".spec.replicas" does not exist', id="read"),
    ],
)
async def test_absent_replicas_can_be_written(client, method, scale, status, message):
    assert (await client.patch(f"{WIDGETS}/a", {"spec": {"replicas": None}})).status == 200
    content = {"Content_Type": "application/merge-patch+json"} if method == "PATCH" else {}
    answer = await client.send(method, PATH, scale, **content)
    assert answer.status == status, answer.body
    assert message is None or answer.body["message"].endswith(message)


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_response_has_no_replicas_that_stored_version_lacks(client, method):
    await define(
        client, definition(_counted("v1", "replicas"), _counted("v2", "count"), plural="things", kind="Thing")
    )
    path = f"/apis/{GROUP}/v2/namespaces/default/things"
    thing = {"apiVersion": f"{GROUP}/v2", "kind": "Thing", "metadata": {"name": "a"}}
    assert (await client.post(path, thing)).status == 201
    content = {"Content_Type": "application/merge-patch+json"} if method == "PATCH" else {}
    answer = await client.send(method, f"{path}/a/scale", SCALE | {"spec": {"replicas": 3}}, **content)
    assert (answer.status, answer.body.get("spec")) == (200, {}), answer.body


def _counted(name, field):
    """Return a version whose objects have only the field with the number of replicas; v1 is stored."""
    spec = {"type": "object", "properties": {field: {"type": "integer"}}}
    paths = {"specReplicasPath": f".spec.{field}", "statusReplicasPath": ".status.replicas"}
    schema = {"type": "object", "properties": {"spec": spec}}
    return version(name, storage=name == "v1", schema=schema, subresources={"scale": paths})


async def test_path_of_scale_that_ends_with_dot_names_empty_field(client):
    paths = {
        "specReplicasPath": ".spec.",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.",
    }
    schema = {"type": "object", "properties": {"status": {"type": "boolean", "default": True}}}
    scaled = version(schema=schema, subresources={"status": {}, "scale": paths})
    await define(client, definition(scaled, plural="things", kind="Thing"))
    path = f"/apis/{GROUP}/v1/namespaces/default/things"
    created = await client.post(
        path, {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    )
    answer = await client.put(f"{path}/a", created.body)
    problem = "accessor error: true is of the type bool, expected map[string]interface{}"
    assert (created.status, answer.status) == (201, 422)
    assert [(cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]] == [
        (".status.replicas", f"Invalid value: 0: .status.replicas {problem}"),
        (".status.", f'Invalid value: "": .status. {problem}'),
    ]


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (
            {"spec": {"replicas": "two"}},
            ".spec.replicas accessor error: two is of the type string, expected int64",
        ),
        (
            {"status": {"selector": {"a": "b"}}},
            ".status.selector accessor error: map[a:b] is of the type map[string]interface {}, expected string",
        ),
    ],
)
async def test_value_from_before_definition_had_scale_is_an_error(stored, problem):
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    scale = {"scale": paths | {"labelSelectorPath": ".status.selector"}}
    async with apiserver.running() as client:
        await define(client, definition(version()))
        widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}}
        assert (await client.post(WIDGETS, widget | stored)).status == 201
        path = f"{DEFINITIONS}/widgets.{GROUP}"
        tree = (await client.get(path)).body
        tree["spec"]["versions"][0]["subresources"] = scale
        assert (await client.put(path, tree)).status == 200
        await client.server.registry.watch_cache.fresh()
        for settle in client.server.context.on_restored:
            await asyncio.wait_for(settle(), WAIT_TIMEOUT)
        read = await client.get(PATH)
        written = await client.patch(PATH, {"spec": {"replicas": 2}})
        messages = [(answer.status, answer.body["message"]) for answer in (read, written)]
        assert messages == [(500, problem)] * 2


async def test_spec_that_scale_creates_has_defaults():
    fields = {"replicas": {"type": "integer"}, "a": {"type": "boolean", "default": False}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    async with apiserver.running() as client:
        await define(client, definition(version(schema=schema, subresources={"scale": paths})))
        widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}}
        assert "spec" not in (await client.post(WIDGETS, widget)).body
        scaled = await client.patch(PATH, {"spec": {"replicas": 2}})
        assert (scaled.status, scaled.body["spec"]) == (200, {"replicas": 2})
        assert (await client.get(f"{WIDGETS}/a")).body["spec"] == {"replicas": 2, "a": False}
