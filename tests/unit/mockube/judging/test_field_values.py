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
