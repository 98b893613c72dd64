from types import MappingProxyType

import pytest

from mockube.apimachinery.schema.model import Field, Shape, Type


def test_fields_are_loaded_on_first_use_and_cached():
    asked = []

    def load():
        asked.append("fields")
        return MappingProxyType({"self": Field(name="self", type=node)})

    node = Type(shape=Shape.STRUCT, go="v1.Node", load=load)
    assert asked == []
    assert node.fields["self"].type.fields is node.fields
    assert asked == ["fields"]


def test_types_compare_by_identity():
    assert Type(shape=Shape.STRING) != Type(shape=Shape.STRING)


def test_type_without_items_raises_clear_error():
    with pytest.raises(AssertionError, match="has no items"):
        _ = Type(shape=Shape.STRING).items


def test_type_is_printed_with_gos_name():
    assert repr(Type(shape=Shape.STRING, go="v1.PullPolicy")) == "Type(v1.PullPolicy)"
    assert repr(Type(shape=Shape.MAP)) == "Type(map)"


def test_undocumented_type_has_empty_description():
    text = Type(shape=Shape.STRING)
    assert (text.description, Field(name="x", type=text).description) == ("", "")
    assert dict(text.fields) == {}
