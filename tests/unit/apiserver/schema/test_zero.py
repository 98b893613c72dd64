import pytest

from mockube.apimachinery.schema.model import Field, SchemaType, Shape
from mockube.apiserver.schema.normal import OMITTED, absent_value, drops_empty, zero


def struct(*fields):
    return SchemaType(shape=Shape.STRUCT, load=lambda: {field.name: field for field in fields})


def field(shape, **facts):
    return Field(name=shape.value, type=SchemaType(shape=shape), **facts)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Shape.STRING, ""), (Shape.INTEGER, 0), (Shape.NUMBER, 0), (Shape.BOOLEAN, False), (Shape.QUANTITY, "0"),
        (Shape.INT_OR_STRING, 0), (Shape.TIME, None), (Shape.MICRO_TIME, None), (Shape.BYTES, None),
        (Shape.LIST, None), (Shape.MAP, None), (Shape.ANY, None), (Shape.STRUCT, {}),
    ],
)  # fmt: skip
def test_zero_value_of_type(shape, expected):
    written = zero(SchemaType(shape=shape))
    assert (written, type(written)) == (expected, type(expected))


def test_zero_struct_contains_fields_that_are_always_written():
    inner = struct(field(Shape.INTEGER))
    outer = struct(
        field(Shape.STRING),
        field(Shape.BOOLEAN, omit_empty=True),
        Field(name="in", type=inner, omit_empty=True),
    )
    assert zero(outer) == {"string": "", "in": {"integer": 0}}


@pytest.mark.parametrize(
    ("shape", "facts", "expected"),
    [
        pytest.param(Shape.STRING, {}, "", id="always written"),
        pytest.param(Shape.STRING, {"omit_empty": True}, OMITTED, id="empty"),
        pytest.param(Shape.STRING, {"pointer": True}, None, id="no pointer"),
        pytest.param(Shape.STRING, {"pointer": True, "omit_empty": True}, OMITTED, id="no pointer, left out"),
        pytest.param(Shape.STRUCT, {"omit_empty": True}, {}, id="a struct is never empty"),
        pytest.param(Shape.TIME, {"omit_empty": True}, None, id="a time is a struct"),
        pytest.param(Shape.TIME, {"omit_zero": True}, OMITTED, id="time with omitzero"),
        pytest.param(Shape.LIST, {}, None, id="no list"),
    ],
)
def test_absent_value_of_field(shape, facts, expected):
    assert absent_value(field(shape, **facts)) == expected


@pytest.mark.parametrize(
    ("shape", "facts", "expected"),
    [
        pytest.param(Shape.INTEGER, {"omit_empty": True}, True, id="0"),
        pytest.param(Shape.INTEGER, {"omit_empty": True, "pointer": True}, False, id="0 behind a pointer"),
        pytest.param(Shape.INTEGER, {}, False, id="0 that is always written"),
        pytest.param(Shape.QUANTITY, {"omit_empty": True}, False, id="a struct"),
        pytest.param(Shape.TIME, {"omit_zero": True}, True, id="a zero time"),
    ],
)
def test_drops_empty_follows_omit_facts(shape, facts, expected):
    assert drops_empty(field(shape, **facts)) is expected
