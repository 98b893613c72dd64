import sys

import orjson
import pytest

from mockube.apiserver.schema import document
from mockube.apiserver.schema.document import Members, NumberLiteral, merge_repeated_fields, parse


def test_parsed_document_keeps_duplicates_and_literals():
    read = parse(b'{"a": 1.50, "a": {"b": [-0]}}')
    assert read == Members([("a", NumberLiteral("1.50")), ("a", Members([("b", [NumberLiteral("-0")])]))])
    assert type(read) is Members
    assert type(read[0][1]) is NumberLiteral


def python_calls(text):
    events = []
    sys.setprofile(lambda _frame, event, _about: events.append(event))
    try:
        parse(text)
    finally:
        sys.setprofile(None)
    return events.count("call")


def test_parsing_yields_to_other_threads_at_each_number():
    assert python_calls(b"[1, 2.5, 3]") == python_calls(b"[]") + 3


def test_document_without_numbers_is_plain():
    assert parse(b'["a", true, null, {}]') == ["a", True, None, Members()]


@pytest.mark.parametrize(
    "text",
    ["0", "-1", "1.0", "1e3", "9223372036854775807", "18446744073709551615", "18446744073709551616", "1e-7"],
)
def test_literal_equals_number_of_orjson(text):
    number = parse(text.encode()).number()
    assert (number, type(number)) == (orjson.loads(text), type(orjson.loads(text)))


def test_number_with_many_digits_is_a_float():
    assert parse(b"1" * 5000).number() == float("inf")


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
def test_repeated_fields_are_merged(schemas, text, expected):
    assert merge_repeated_fields(schemas.kind("v1", "ConfigMap"), document.parse(text.encode())) == expected


def test_duplicate_map_keys_are_not_merged(schemas):
    schema = schemas.definition("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    read = document.parse(b'{"properties":{"a":{"type":"b"},"a":{"title":"c"}}}')
    assert merge_repeated_fields(schema, read) == {"properties": {"a": {"title": "c"}}}
