"""OpenAPI documents: whole, without loose ends, and the same whenever they are asked for."""

import orjson
import pytest

from mockube.apiserver.kinds.registry import GROUPS
from mockube.apiserver.openapi.documents import Documents
from mockube.apiserver.wire.protobuf.varint import read_parts, read_payload, read_varint

DOCUMENTS = Documents(row for group in GROUPS for row in group.resources)
V2 = orjson.loads(DOCUMENTS.v2().body)


def references(tree):
    if isinstance(tree, list):
        return {name for item in tree for name in references(item)}
    if not isinstance(tree, dict):
        return set()
    here = {tree["$ref"]} if isinstance(tree.get("$ref"), str) else set()
    return here | {name for item in tree.values() for name in references(item)}


@pytest.mark.parametrize("folder", DOCUMENTS.folders)
def test_every_reference_of_a_group_leads_somewhere(folder):
    document = orjson.loads(DOCUMENTS.v3(folder).body)
    schemas = {f"#/components/schemas/{name}" for name in document["components"].get("schemas", ())}
    assert references(document) <= schemas


def test_every_reference_of_version_2_leads_somewhere():
    parts = ("definitions", "parameters")
    assert references(V2) <= {f"#/{part}/{name}" for part in parts for name in V2[part]}


def test_every_operation_has_a_name_of_its_own():
    operations = [
        operation["operationId"]
        for path, item in V2["paths"].items()
        for method, operation in item.items()
        if method != "parameters" and "{namespace}" not in path
    ]
    assert len(operations) == len(set(operations))


def test_a_client_can_tell_what_a_patch_takes():
    document = orjson.loads(DOCUMENTS.v3("apis/apps/v1").body)
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    assert {"fieldValidation", "dryRun", "force"} <= {parameter["name"] for parameter in patch["parameters"]}


def test_kinds_can_be_found_by_group_version_and_kind():
    schemas = orjson.loads(DOCUMENTS.v3("api/v1").body)["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert {"group": "", "kind": "Pod", "version": "v1"} in pod["x-kubernetes-group-version-kind"]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    assert (
        schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]["x-kubernetes-patch-merge-key"]
        == "name"
    )


def test_the_index_names_every_document_by_what_it_says():
    paths = orjson.loads(DOCUMENTS.index().body)["paths"]
    assert set(paths) == set(DOCUMENTS.folders)
    assert paths["api/v1"]["serverRelativeURL"].endswith(DOCUMENTS.v3("api/v1").digest)


def test_version_2_says_the_same_in_protobuf():
    document = read_parts(DOCUMENTS.v2(protobuf=True).body)
    assert document[1] == b"2.0"
    assert read_parts(document[2])[1] == b"Kubernetes"
    named = [read_parts(payload) for payload in payloads(document[9])]
    assert [part[1].decode() for part in named] == list(V2["definitions"])
    paths = [read_parts(payload) for payload in payloads(document[8])]
    assert [part[1].decode() for part in paths] == list(V2["paths"])


def payloads(message):
    """What stands in a message of messages, one after the other."""
    at = 0
    while at < len(message):
        at = read_varint(message, at)[1]
        payload, at = read_payload(message, at)
        yield payload


V3 = {folder: orjson.loads(DOCUMENTS.v3(folder).body) for folder in ("api/v1", "apis/apps/v1")}


def schemas_of(folder, name):
    """A definition as each version has it."""
    return V2["definitions"][name], V3[folder]["components"]["schemas"][name]


def test_the_values_of_a_field_stand_in_the_schema_and_are_explained_where_it_is_described():
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


def test_values_that_nobody_explained_stand_alone():
    for schema in schemas_of("api/v1", "io.k8s.api.core.v1.PodSpec"):
        described = schema["properties"]["restartPolicy"]["description"]
        assert described.endswith('\n - `"Always"`\n - `"Never"`\n - `"OnFailure"`')


def test_the_values_of_what_is_in_a_list_or_a_map_stand_with_its_elements():
    for schema in schemas_of("api/v1", "io.k8s.api.core.v1.PersistentVolumeClaimStatus"):
        modes, resizing = (
            schema["properties"]["accessModes"],
            schema["properties"]["allocatedResourceStatuses"],
        )
        assert "ReadWriteOncePod" in modes["items"]["enum"]
        assert "NodeResizePending" in resizing["additionalProperties"]["enum"]
        assert "enum" not in modes.keys() | resizing.keys()
        assert "Possible enum values" not in modes["description"] + resizing["description"]


def test_a_kind_may_be_any_text():
    for schema in schemas_of("api/v1", "io.k8s.api.core.v1.Pod"):
        assert "enum" not in schema["properties"]["kind"]


def test_defaults_are_told_in_version_3_alone():
    before, now = schemas_of("api/v1", "io.k8s.api.core.v1.ContainerPort")
    assert "default" not in before["properties"]["protocol"]
    assert now["properties"]["protocol"]["default"] == "TCP"
    assert now["properties"]["containerPort"]["default"] == 0


def test_a_reference_stands_alone_or_among_all_that_holds():
    _, spec = schemas_of("api/v1", "io.k8s.api.core.v1.PodSpec")
    reference = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}
    assert spec["properties"]["overhead"]["additionalProperties"] == reference
    container = {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}
    assert spec["properties"]["containers"]["items"] == {"allOf": [container], "default": {}}


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
def test_what_may_be_either_of_two_is_a_text_to_version_2_and_described_in_both(name, version_2, version_3):
    before, now = schemas_of("api/v1", name)
    described = {"description": before["description"]}
    assert before["description"].startswith(name.rpartition(".")[2])
    assert before == described | version_2
    assert now == described | version_3
