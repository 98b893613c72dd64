from types import MappingProxyType

import pytest

from mockube.apimachinery.schema.model import Field, Shape, Type


def test_fields_are_made_when_they_are_asked_for_and_then_kept():
    asked = []

    def load():
        asked.append("fields")
        return MappingProxyType({"self": Field(name="self", type=node)})

    node = Type(shape=Shape.STRUCT, go="v1.Node", load=load)
    assert asked == []
    assert node.fields["self"].type.fields is node.fields
    assert asked == ["fields"]


def test_a_use_is_equal_to_itself_alone():
    assert Type(shape=Shape.STRING) != Type(shape=Shape.STRING)


def test_what_has_no_items_says_so():
    with pytest.raises(AssertionError, match="has no items"):
        _ = Type(shape=Shape.STRING).items


def test_a_type_prints_as_go_calls_it():
    assert repr(Type(shape=Shape.STRING, go="v1.PullPolicy")) == "Type(v1.PullPolicy)"
    assert repr(Type(shape=Shape.MAP)) == "Type(map)"


def test_what_nobody_described_is_described_by_nothing():
    text = Type(shape=Shape.STRING)
    assert (text.description, Field(name="x", type=text).description) == ("", "")
    assert dict(text.fields) == {}
