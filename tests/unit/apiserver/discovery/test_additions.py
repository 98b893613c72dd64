"""Additions to OpenAPI definitions: all are applied, and each to an existing field."""

import orjson
import pytest

from mockube.apimachinery.schema import minors
from mockube.apiserver.openapi import schemas

DEFINITIONS = minors.openapi_definitions("1.36")
ADDITIONS = schemas.load("1.36").additions


@pytest.mark.parametrize("minor", minors.OLDER)
def test_definitions_of_older_minors_are_complete(minor):
    definitions = schemas.Definitions(minor)
    assert (
        definitions.definition_names_by_gvk()["apps", "v1", "Deployment"] == "io.k8s.api.apps.v1.Deployment"
    )
    policy = definitions.schema("io.k8s.api.core.v1.Container", schemas.V3)["properties"]["imagePullPolicy"]
    assert policy["enum"] == ["Always", "IfNotPresent", "Never"]
    needed = definitions.with_references(["io.k8s.api.core.v1.PodList"])
    assert all(definitions.schema(name, schemas.V2) for name in needed)


def test_release_without_documents_is_refused():
    with pytest.raises(ValueError, match="not in tuple"):
        schemas.load("1.0")


def test_additions_extend_existing_properties_only():
    for name in DEFINITIONS.keys() & ADDITIONS.keys():
        definition, addition = (orjson.loads(bytes(texts[name])) for texts in (DEFINITIONS, ADDITIONS))
        assert addition.get("properties", {}).keys() <= definition.get("properties", {}).keys(), name


def test_description_is_appended_and_other_additions_are_set():
    schema = {"type": "string", "description": "What it is."}
    assert schemas.extend_schema(schema, {"description": " More.", "enum": ["a"], "default": ""}) == {
        "type": "string",
        "description": "What it is. More.",
        "enum": ["a"],
        "default": "",
    }


def test_additions_extend_nested_properties_and_items():
    schema = {"properties": {"a": {"items": {"type": "string"}}, "b": {"type": "string"}}}
    made = schemas.extend_schema(schema, {"properties": {"a": {"items": {"enum": ["x"]}}}})
    assert made == {
        "properties": {"a": {"items": {"type": "string", "enum": ["x"]}}, "b": {"type": "string"}}
    }
    assert schema["properties"]["a"] == {"items": {"type": "string"}}, (
        "a schema that was given is left as it was"
    )
