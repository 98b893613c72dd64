"""Defaults in the metadata of embedded objects are accepted or refused as by a real kube-apiserver 1.36."""

import pytest

from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.apiextensions.schemas import check_schema

EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
TEXT = {"type": "string"}
FIELD = "openAPIV3Schema.properties[f]"
UNMARSHAL = "json: cannot unmarshal number into Go struct field ObjectMeta"


def embedded(metadata, **head):
    return EMBEDDED | {"properties": {"metadata": {"type": "object"} | metadata} | head}


def problems(schema):
    return [*map(str, check_schema({"openAPIV3Schema": schema}, ROOT))]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(embedded({"default": {"name": "a", "unknown": "x"}}), "", id="unknown fields"),
        pytest.param(embedded({"properties": {"name": TEXT | {"default": "a"}}}), "", id="a name"),
        pytest.param(
            embedded({"properties": {"name": {"type": "string", "default": 5}}}),
            f".properties[metadata].properties[name].default: Invalid value: 5: must result in valid metadata: "
            f'metadata: Invalid value: {{"name":5}}: {UNMARSHAL}.name of type string',
            id="a name of another type",
        ),
        pytest.param(
            embedded({"default": {"name": "a", "labels": 1}}),
            '.properties[metadata].default: Invalid value: {"labels":1,"name":"a"}: must result in valid metadata: '
            f'metadata: Invalid value: {{"labels":1,"name":"a"}}: {UNMARSHAL}.labels of type map[string]string',
            id="labels of another type",
        ),
        pytest.param(
            embedded({}, apiVersion=TEXT | {"default": "a/b/c"}),
            '.properties[apiVersion].default: Invalid value: "a/b/c": must result in valid metadata: '
            'apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
            id="a version",
        ),
        pytest.param(
            embedded({"default": {"name": "a"}, "maxProperties": 0}),
            ".properties[metadata].default: Too many: 1: must have at most 0 items",
            id="value that the schema refuses",
        ),
    ],
)
def test_embedded_object_default_is_checked(schema, expected):
    found = problems({"type": "object", "properties": {"f": schema}})
    assert found == ([FIELD + expected] if expected else [])


def test_default_of_root_metadata_is_refused():
    found = problems({"type": "object", "properties": {"apiVersion": TEXT | {"default": "a/b/c"}}})
    at = "openAPIV3Schema.properties[apiVersion].default"
    problem = 'apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'
    assert found == [
        f'{at}: Invalid value: "a/b/c": must result in valid metadata: {problem}',
        f"{at}: Forbidden: must not be set in top-level apiVersion",
    ]
