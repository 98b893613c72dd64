"""OpenAPI documents: whole, without loose ends, and the same whenever they are asked for."""

import orjson
import pytest

from apiserver.discovery.openapi.documents import Documents
from apiserver.resources.catalog import GROUPS
from apiserver.wire.protobuf.varint import read_parts, read_payload, read_varint

DOCUMENTS = Documents(row for group in GROUPS for row in group.resources)
V2 = orjson.loads(DOCUMENTS.v2)


def references(tree):
    if isinstance(tree, list):
        return {name for item in tree for name in references(item)}
    if not isinstance(tree, dict):
        return set()
    here = {tree["$ref"]} if isinstance(tree.get("$ref"), str) else set()
    return here | {name for item in tree.values() for name in references(item)}


@pytest.mark.parametrize("folder", DOCUMENTS.folders)
def test_every_reference_of_a_group_leads_somewhere(folder):
    document = orjson.loads(DOCUMENTS.v3(folder))
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= schemas


def test_every_reference_of_version_2_leads_somewhere():
    assert references(V2) <= {f"#/definitions/{name}" for name in V2["definitions"]}


def test_every_operation_has_a_name_of_its_own():
    operations = [
        operation["operationId"]
        for path, item in V2["paths"].items()
        for method, operation in item.items()
        if method != "parameters" and "{namespace}" not in path
    ]
    assert len(operations) == len(set(operations))


def test_a_client_can_tell_what_a_patch_takes():
    document = orjson.loads(DOCUMENTS.v3("apis/apps/v1"))
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    assert {"fieldValidation", "dryRun", "force"} <= {parameter["name"] for parameter in patch["parameters"]}


def test_kinds_can_be_found_by_group_version_and_kind():
    schemas = orjson.loads(DOCUMENTS.v3("api/v1"))["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert {"group": "", "kind": "Pod", "version": "v1"} in pod["x-kubernetes-group-version-kind"]
    assert pod["properties"]["spec"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]
    assert (
        schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]["x-kubernetes-patch-merge-key"]
        == "name"
    )


def test_the_index_names_every_document_by_what_it_says():
    paths = orjson.loads(DOCUMENTS.index)["paths"]
    assert set(paths) == set(DOCUMENTS.folders)
    assert paths["api/v1"]["serverRelativeURL"].endswith(DOCUMENTS.hash("api/v1"))


def test_version_2_says_the_same_in_protobuf():
    document = read_parts(DOCUMENTS.v2_protobuf)
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
