"""Duplicate fields are merged as by Go's decoder."""

import pytest

from mockube.apimachinery.schema import document
from mockube.apimachinery.schema.settle import settle


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"data":{"a":"1","a":"2"}}', {"data": {"a": "2"}}, id="the last text"),
        pytest.param(
            '{"data":{"a":"1"},"data":{"b":"2"}}', {"data": {"a": "1", "b": "2"}}, id="maps are merged"
        ),
        pytest.param('{"data":{"a":"1"},"data":null}', {"data": None}, id="null replaces a map"),
        pytest.param('{"data":null,"data":{"a":"1"}}', {"data": {"a": "1"}}, id="null is replaced"),
        pytest.param(
            '{"metadata":{"name":"a"},"metadata":{"namespace":"b"}}',
            {"metadata": {"name": "a", "namespace": "b"}},
            id="structs are merged",
        ),
        pytest.param(
            '{"metadata":{"name":"a"},"metadata":null}',
            {"metadata": {"name": "a"}},
            id="null does not replace a struct",
        ),
        pytest.param('{"kind":"a","kind":null}', {"kind": "a"}, id="null does not replace a string"),
        pytest.param(
            '{"immutable":true,"immutable":null}', {"immutable": None}, id="null replaces a pointer"
        ),
        pytest.param('{"x":[{"a":1}],"x":1.5}', {"x": 1.5}, id="unknown fields are not merged"),
        pytest.param(
            '{"metadata":{"ownerReferences":[{"name":"a"},{"name":"b"}],"ownerReferences":[{"uid":"c"}]}}',
            {"metadata": {"ownerReferences": [{"name": "a", "uid": "c"}]}},
            id="list items are merged by index",
        ),
        pytest.param(
            '{"metadata":{"managedFields":[{"fieldsV1":{"a":[1e3,null]}}]}}',
            {"metadata": {"managedFields": [{"fieldsV1": {"a": [1000.0, None]}}]}},
            id="raw JSON is read as it is",
        ),
    ],
)
def test_omitted_fields_are_settled(schemas, text, expected):
    assert settle(schemas.kind("v1", "ConfigMap"), document.parse(text.encode())) == expected


def test_duplicate_map_keys_are_not_merged(schemas):
    schema = schemas.definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    read = document.parse(b'{"properties":{"a":{"type":"b"},"a":{"title":"c"}}}')
    assert settle(schema, read) == {"properties": {"a": {"title": "c"}}}
