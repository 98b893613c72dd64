from types import MappingProxyType

import pytest

from mockube.apimachinery.schema.model import Field, SchemaType, Shape


def test_fields_are_loaded_on_first_use_and_cached():
    asked = []

    def load():
        asked.append("fields")
        return MappingProxyType({"self": Field(name="self", type=node)})

    node = SchemaType(shape=Shape.STRUCT, go="v1.Node", load=load)
    assert asked == []
    assert node.fields["self"].type.fields is node.fields
    assert asked == ["fields"]


def test_types_compare_by_identity():
    assert SchemaType(shape=Shape.STRING) != SchemaType(shape=Shape.STRING)


def test_type_without_items_raises_clear_error():
    with pytest.raises(AssertionError, match="has no items"):
        _ = SchemaType(shape=Shape.STRING).items


def test_type_is_printed_with_gos_name():
    assert repr(SchemaType(shape=Shape.STRING, go="v1.PullPolicy")) == "SchemaType(v1.PullPolicy)"
    assert repr(SchemaType(shape=Shape.MAP)) == "SchemaType(map)"


def test_undocumented_type_has_empty_description():
    text = SchemaType(shape=Shape.STRING)
    assert (text.description, Field(name="x", type=text).description) == ("", "")
    assert dict(text.fields) == {}
