"""The types that patches and server-side apply use for custom resources."""

import pytest

from mockube.apimachinery.schema.model import SchemaType, Shape
from mockube.apiserver.customresources.types import kind_type, type_of

TEXT = {"type": "string"}
KEEP = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        pytest.param(TEXT, Shape.STRING, id="text"),
        pytest.param({"type": "integer"}, Shape.INTEGER, id="integer"),
        pytest.param({"x-kubernetes-int-or-string": True}, Shape.ANY, id="either"),
        pytest.param(TEXT | {"format": "date"}, Shape.SCALAR, id="text with a format"),
        pytest.param({"type": "object", "properties": {"a": TEXT}}, Shape.STRUCT, id="fields"),
        pytest.param({"type": "object", "additionalProperties": TEXT}, Shape.MAP, id="members"),
        pytest.param({"type": "object"} | KEEP, Shape.MAP, id="anything in an object"),
        pytest.param(KEEP, Shape.ANY, id="anything"),
        pytest.param({"type": "array", "items": TEXT}, Shape.LIST, id="list"),
    ],
)
def test_type_has_shape_of_schema(schema, shape):
    assert type_of(schema).shape is shape


def test_types_have_merge_rules_of_schema():
    items = {
        "type": "object",
        "properties": {"k": TEXT | {"default": "x"}},
        "x-kubernetes-map-type": "atomic",
    }
    listed = type_of(
        {
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        }
    )
    assert (listed.list_type, listed.map_keys, listed.items.map_type) == ("map", ("k",), "atomic")
    assert listed.items.fields["k"].default == "x"
    assert type_of({"type": "array", "items": TEXT}).list_type == "atomic"


def test_declared_fields_have_types_with_preserved_unknown_fields():
    made = type_of({"type": "object", "properties": {"a": TEXT}} | KEEP)
    assert made.fields["a"].type.shape is Shape.STRING
    assert made.items.shape is Shape.ANY


def test_custom_kind_type_has_object_fields():
    metadata = SchemaType(shape=Shape.STRUCT, name="ObjectMeta")
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": TEXT, "metadata": {"type": "object"}},
    }
    made = kind_type("com.example.v1.Widget", schema, metadata)
    assert (made.name, [*made.fields]) == (
        "com.example.v1.Widget",
        ["apiVersion", "kind", "metadata", "spec"],
    )
    assert made.fields["metadata"].type is metadata
    assert made.fields["spec"].required
