"""Other valid values for fields, from their schemas."""

from typing import Any

import pytest

from mockube.judging.field_values import NO_VALUE, field_changes, other_value, schema_of

DEFINITION = {
    "spec": {
        "versions": [
            {
                "name": "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "properties": {
                            "spec": {
                                "properties": {
                                    "pages": {"type": "integer", "minimum": 1, "maximum": 9},
                                    "title": {"type": "string"},
                                    "store": {
                                        "type": "object",
                                        "properties": {
                                            "size": {"type": "string"},
                                            "fast": {"type": "boolean"},
                                        },
                                    },
                                    "backup": {
                                        "type": "object",
                                        "required": ["to"],
                                        "properties": {
                                            "to": {"type": "string"},
                                            "every": {"type": "integer"},
                                        },
                                    },
                                }
                            }
                        }
                    }
                },
            }
        ]
    }
}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "boolean"}, True, False),
        ({"type": "boolean"}, NO_VALUE, True),
        ({"type": "integer"}, 3, 4),
        ({"type": "integer", "maximum": 3}, 3, 2),
        ({"type": "integer", "minimum": 3, "maximum": 3}, 3, NO_VALUE),
        ({"type": "integer", "minimum": 5}, NO_VALUE, 6),
        ({"type": "integer", "multipleOf": 8}, 8, 16),
        ({"type": "string", "enum": ["a", "b"]}, "a", "b"),
        ({"type": "string", "enum": ["a"]}, "a", NO_VALUE),
        ({"type": "string"}, "web", "webx"),
        ({"type": "string"}, "1G", "2G"),
        ({"type": "string"}, "30s", "31s"),
        ({"type": "string"}, "1.26", "1.26x"),
        ({"type": "string", "maxLength": 3}, "web", "we"),
        ({"type": "string", "pattern": "^[0-9]+Gi$"}, "10Gi", "11Gi"),
        ({"type": "string", "pattern": "^a$"}, NO_VALUE, NO_VALUE),
        ({"type": "string", "minLength": 3}, NO_VALUE, "xxx"),
        ({"type": "string", "format": "date-time"}, NO_VALUE, "2026-01-01T00:00:00Z"),
        ({"x-kubernetes-int-or-string": True}, 80, 81),
        ({"type": "array", "items": {"type": "string"}}, ["a", "b"], ["a"]),
        ({"type": "array", "items": {"type": "string"}}, ["a"], ["ax"]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, NO_VALUE, [1, 1]),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"a": "b"},
            {"a": "b", "mockube-test": "x"},
        ),
        ({"type": "integer", "default": 7}, NO_VALUE, 8),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"a": 1}, NO_VALUE),
    ],
)
def test_other_value_is_valid_and_differs(schema: Any, value: Any, expected: Any) -> None:
    assert other_value(schema, value) == expected


def test_fields_of_sample_are_changed_first() -> None:
    changes = field_changes(schema_of(DEFINITION, "v1"), {"title": "Blog", "store": {"size": "1G"}})
    assert [each.name for each in changes] == [
        "spec.title",
        "spec.store.size",
        "spec.backup",
        "spec.pages",
        "spec.store.fast",
    ]


def test_absent_object_with_required_fields_is_set_as_a_whole() -> None:
    changes = {each.name: each for each in field_changes(schema_of(DEFINITION, "v1"), {})}
    assert changes["spec.backup"].patch() == {"spec": {"backup": {"to": "x"}}}


def test_version_without_schema_has_no_fields() -> None:
    assert field_changes(schema_of(DEFINITION, "v2"), {"a": 1}) == []


@pytest.mark.parametrize(
    ("text_format", "expected"),
    [
        ("date-time", "2026-01-01T00:00:00Z"),
        ("date", "2026-01-01"),
        ("duration", "90s"),
        ("ipv4", "192.0.2.1"),
        ("ipv6", "2001:db8::1"),
        ("uri", "https://example.com/"),
        ("hostname", "example.com"),
        ("email", "user@example.com"),
        ("uuid", "6f1c6f5e-7b1e-4a39-9d38-0d8ea8f1a5c3"),
        ("byte", "dmFsdWU="),
        ("unknown", "x"),
    ],
)
def test_text_has_the_format_of_its_schema(text_format: str, expected: str) -> None:
    assert other_value({"type": "string", "format": text_format}, NO_VALUE) == expected


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "boolean"}, True, False),
        ({"type": "boolean"}, NO_VALUE, True),
        ({"type": "integer"}, 3, 4),
        ({"type": "integer", "maximum": 3}, 3, 2),
        ({"type": "integer", "minimum": 3, "maximum": 3}, 3, NO_VALUE),
        ({"type": "integer"}, NO_VALUE, 1),
        ({"type": "integer", "minimum": 5}, NO_VALUE, 6),
        ({"type": "integer", "minimum": 5, "maximum": 5}, NO_VALUE, 5),
        ({"type": "number", "multipleOf": 5}, 10, 15),
        ({"type": "string"}, "a", "ax"),
        ({"type": "string", "maxLength": 2}, "ab", "a"),
        ({"type": "string", "maxLength": 1}, "a", NO_VALUE),
        ({"type": "string", "minLength": 3}, NO_VALUE, "xxx"),
        ({"type": "string"}, "1Gi", "2Gi"),
        ({"type": "string"}, "9", "10"),
        ({"type": "string"}, "1-2", "1-2x"),
        ({"type": "string"}, "1abc", "1abcx"),
        ({"type": "string", "pattern": "."}, "v1.z-", "v1.y-"),
        ({"type": "string", "pattern": "."}, "v9", "v8"),
        ({"type": "string", "pattern": "."}, "aZ", "aY"),
        ({"type": "string", "pattern": "."}, "ab", "ac"),
        ({"type": "string", "pattern": "."}, "5m", "6m"),
        ({"type": "string", "pattern": "."}, "--", NO_VALUE),
        ({"type": "string", "pattern": "."}, "", NO_VALUE),
        ({"type": "string", "pattern": "."}, NO_VALUE, NO_VALUE),
        ({"enum": ["a", None, "b"]}, "a", "b"),
        ({"enum": ["a"]}, "a", NO_VALUE),
        ({"type": "integer", "default": 7}, NO_VALUE, 8),
        ({"x-kubernetes-int-or-string": True}, 3, 4),
        ({"x-kubernetes-int-or-string": True}, "30%", 1),
        ({"type": "array", "items": {"type": "string"}}, ["a", "b"], ["a"]),
        ({"type": "array", "minItems": 2, "items": {"type": "string"}}, ["a", "b"], ["a", "bx"]),
        ({"type": "array", "items": {"type": "string"}}, ["a"], ["ax"]),
        ({"type": "array", "items": {}}, ["a"], NO_VALUE),
        ({"type": "array", "minItems": 2, "items": {"type": "boolean"}}, NO_VALUE, [True, True]),
        ({"type": "array", "maxItems": 0, "items": {"type": "boolean"}}, NO_VALUE, NO_VALUE),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"a": 1},
            {"a": 1, "mockube-test": 1},
        ),
        ({"type": "object", "additionalProperties": {}}, {"a": 1}, {"a": 1}),
        ({"type": "object", "additionalProperties": {"type": "null"}}, {}, NO_VALUE),
        (
            {
                "type": "object",
                "required": ["b"],
                "properties": {"a": {"type": "boolean"}, "b": {"type": "integer"}},
            },
            {},
            {"b": 1},
        ),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, {}, {"a": True}),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, {"a": True}, {"a": True}),
        ({"type": "object", "required": ["a"], "properties": {"a": {}}}, {}, NO_VALUE),
        ({"type": "object"}, {}, NO_VALUE),
        ({}, "a", NO_VALUE),
    ],
)
def test_other_value_is_one_that_the_schema_allows(schema: Any, value: Any, expected: Any) -> None:
    assert other_value(schema, value) == expected
