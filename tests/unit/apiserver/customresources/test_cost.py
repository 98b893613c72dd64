"""The validation cost of a kind is estimated from its schema, and never much too low."""

import pytest

from mockube.apimachinery.schema.model import SchemaType, Shape
from mockube.apiserver.customresources.cost import INSTRUCTIONS, NODE, cost_of
from mockube.apiserver.customresources.custom_version import CustomVersion, pack_schema
from mockube.apiserver.event_loop import LARGE
from mockube.apiserver.kinds.api_resource import Resource

ROW = Resource(group="a.b", version="v1", name="cs", kind="C")
TEXT = {"type": "string"}
SLOW = TEXT | {"pattern": "(?:[a-z]?){1000}"}
MIN_COST = 4000 // INSTRUCTIONS


def fields(**properties):
    return {"type": "object", "properties": properties}


def test_cost_of_common_schema_is_1():
    name = TEXT | {"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
    assert (
        cost_of(fields(spec=fields(name=name, labels={"type": "object", "additionalProperties": name}))).byte
        == 1
    )


@pytest.mark.parametrize(
    "schema",
    [
        fields(a=SLOW),
        fields(a={"type": "array", "items": SLOW}),
        fields(a={"type": "object", "additionalProperties": SLOW}),
        fields(a=TEXT | {"not": SLOW}),
        fields(a=TEXT | {"anyOf": [{"maxLength": at} for at in range(MIN_COST)]}),
        fields(
            a={
                "type": "array",
                "items": fields(b=TEXT) | {"required": [f"f{at}" for at in range(4 * MIN_COST)]},
            }
        ),
        fields(a={"type": "array", "items": fields(b=TEXT | {"default": "x" * 400 * MIN_COST})}),
    ],
)
def test_slow_schema_has_higher_cost_per_byte(schema):
    assert cost_of(schema).byte > MIN_COST


def test_alternatives_add_cost_and_fields_do_not():
    assert cost_of(fields(a=TEXT | {"oneOf": [SLOW, SLOW]})).byte > 2 * MIN_COST
    assert cost_of(fields(a=SLOW, b=SLOW)).byte == cost_of(fields(a=SLOW)).byte


def test_preparation_cost_counts_schemas_and_instructions():
    assert cost_of(fields(**{f"f{at}": TEXT for at in range(LARGE // NODE)})).preparation > LARGE
    assert cost_of(fields(a=SLOW)).preparation > 4000


def test_prepared_kind_behaves_like_lazily_compiled_kind():
    schema = fields(
        a=SLOW | {"default": "x"}, b={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    )
    prepared, other = (
        CustomVersion(
            row=ROW,
            packed_schema=pack_schema(schema),
            strategy=None,
            printer=None,
            metadata=lambda: SchemaType(shape=Shape.ANY),
        )
        for _ in range(2)
    )
    prepared.prepare()
    assert prepared.is_prepared
    assert prepared.type.fields.keys() == other.type.fields.keys()
    for tree in ({"b": ["c", "c"]}, {"a": 1}, {}):
        assert [*map(str, prepared.check(tree))] == [*map(str, other.check(tree))]
        filled = [dict(tree), dict(tree)]
        prepared.default(filled[0])
        other.default(filled[1])
        assert filled[0] == filled[1]
