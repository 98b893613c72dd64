"""OpenAPI documents: complete, without unresolved references, and deterministic."""

from functools import cache

import orjson
import pytest

from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.openapi.documents import Documents
from mockube.apiserver.wire.protobuf.varint import read_parts, read_payload, read_varint

DOCUMENTS = Documents(row for group in GROUPS for row in group.resources)


@cache
def v2():
    return orjson.loads(DOCUMENTS.v2().body)


@cache
def v3(folder):
    return orjson.loads(DOCUMENTS.v3(folder).body)


def references(tree):
    if isinstance(tree, list):
        return {name for item in tree for name in references(item)}
    if not isinstance(tree, dict):
        return set()
    here = {tree["$ref"]} if isinstance(tree.get("$ref"), str) else set()
    return here | {name for item in tree.values() for name in references(item)}


@pytest.mark.thorough
@pytest.mark.parametrize("folder", DOCUMENTS.folders)
def test_every_reference_of_group_document_resolves(folder):
    document = orjson.loads(DOCUMENTS.v3(folder).body)
    schemas = {f"#/components/schemas/{name}" for name in document["components"].get("schemas", ())}
    assert references(document) <= schemas


def test_every_reference_of_v2_document_resolves():
    parts = ("definitions", "parameters")
    assert references(v2()) <= {f"#/{part}/{name}" for part in parts for name in v2()[part]}


def test_operation_ids_are_unique():
    operations = [
        operation["operationId"]
        for path, item in v2()["paths"].items()
        for method, operation in item.items()
        if method != "parameters" and "{namespace}" not in path
    ]
    assert len(operations) == len(set(operations))


def test_patch_operation_lists_media_types():
    document = orjson.loads(DOCUMENTS.v3("apis/apps/v1").body)
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    assert {"fieldValidation", "dryRun", "force"} <= {parameter["name"] for parameter in patch["parameters"]}


def test_kinds_are_found_by_group_version_and_kind():
    schemas = orjson.loads(DOCUMENTS.v3("api/v1").body)["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert {"group": "", "kind": "Pod", "version": "v1"} in pod["x-kubernetes-group-version-kind"]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    assert (
        schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]["x-kubernetes-patch-merge-key"]
        == "name"
    )


def test_openapi_index_has_digest_of_every_document():
    paths = orjson.loads(DOCUMENTS.index().body)["paths"]
    assert set(paths) == set(DOCUMENTS.folders)
    assert paths["api/v1"]["serverRelativeURL"].endswith(DOCUMENTS.v3("api/v1").digest)


@pytest.mark.thorough
def test_v2_document_is_served_as_protobuf():
    document = read_parts(DOCUMENTS.v2(protobuf=True).body)
    assert document[1] == b"2.0"
    assert read_parts(document[2])[1] == b"Kubernetes"
    named = [read_parts(payload) for payload in payloads(document[9])]
    assert [part[1].decode() for part in named] == list(v2()["definitions"])
    paths = [read_parts(payload) for payload in payloads(document[8])]
    assert [part[1].decode() for part in paths] == list(v2()["paths"])


def payloads(message):
    """Yield the payloads of a message that consists of messages."""
    at = 0
    while at < len(message):
        at = read_varint(message, at)[1]
        payload, at = read_payload(message, at)
        yield payload


def schemas_of(folder, name):
    """Return the schemas of a definition in OpenAPI v2 and v3."""
    return v2()["definitions"][name], v3(folder)["components"]["schemas"][name]


def test_enum_values_are_in_schema_and_described():
    for schema in schemas_of("apis/apps/v1", "io.k8s.api.apps.v1.DeploymentStrategy"):
        strategy = schema["properties"]["type"]
        assert strategy["enum"] == ["Recreate", "RollingUpdate"]
        assert strategy["description"] == (
            'Type of deployment. Can be "Recreate" or "RollingUpdate". Default is RollingUpdate.\n'
            "\n"
            "Possible enum values:\n"
            ' - `"Recreate"` Kill all existing pods before creating new ones.\n'
            ' - `"RollingUpdate"` Replace the old ReplicaSets by new one using rolling update i.e gradually scale down the'
            " old ReplicaSets and scale up the new one."
        )


def test_undocumented_enum_values_are_listed():
    for schema in schemas_of("api/v1", "io.k8s.api.core.v1.PodSpec"):
        described = schema["properties"]["restartPolicy"]["description"]
        assert described.endswith('\n - `"Always"`\n - `"Never"`\n - `"OnFailure"`')


def test_enum_values_of_lists_and_maps_are_in_their_elements():
    for schema in schemas_of("api/v1", "io.k8s.api.core.v1.PersistentVolumeClaimStatus"):
        modes, resizing = (
            schema["properties"]["accessModes"],
            schema["properties"]["allocatedResourceStatuses"],
        )
        assert "ReadWriteOncePod" in modes["items"]["enum"]
        assert "NodeResizePending" in resizing["additionalProperties"]["enum"]
        assert "enum" not in modes.keys() | resizing.keys()
        assert "Possible enum values" not in modes["description"] + resizing["description"]


@pytest.mark.thorough
def test_kind_property_has_no_enum():
    for schema in schemas_of("api/v1", "io.k8s.api.core.v1.Pod"):
        assert "enum" not in schema["properties"]["kind"]


def test_defaults_are_in_v3_only():
    before, now = schemas_of("api/v1", "io.k8s.api.core.v1.ContainerPort")
    assert "default" not in before["properties"]["protocol"]
    assert now["properties"]["protocol"]["default"] == "TCP"
    assert now["properties"]["containerPort"]["default"] == 0


def test_reference_with_other_keywords_is_in_all_of():
    _, spec = schemas_of("api/v1", "io.k8s.api.core.v1.PodSpec")
    reference = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}
    assert spec["properties"]["overhead"]["additionalProperties"] == reference
    _, pod = schemas_of("api/v1", "io.k8s.api.core.v1.Pod")
    of_spec = {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}
    assert (pod["properties"]["spec"]["allOf"], pod["properties"]["spec"]["default"]) == ([of_spec], {})


@pytest.mark.parametrize(
    ("name", "version_2", "version_3"),
    [
        (
            "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            {"type": "string", "format": "int-or-string"},
            {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
        ),
        (
            "io.k8s.apimachinery.pkg.api.resource.Quantity",
            {"type": "string"},
            {"oneOf": [{"type": "string"}, {"type": "number"}]},
        ),
    ],
)
def test_int_or_string_is_string_in_v2_and_one_of_in_v3(name, version_2, version_3):
    before, now = schemas_of("api/v1", name)
    described = {"description": before["description"]}
    assert before["description"].startswith(name.rpartition(".")[2])
    assert before == described | version_2
    assert now == described | version_3
