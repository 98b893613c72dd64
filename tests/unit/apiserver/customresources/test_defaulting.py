"""What a schema declares is filled in where it is absent."""

import pytest

from mockube.apiserver.customresources.defaulting import filler


def obj(**properties):
    return {"type": "object", "properties": properties}


THREE = {"type": "integer", "default": 3}


@pytest.mark.parametrize(
    ("schema", "tree", "expected"),
    [
        pytest.param(obj(a=THREE), {}, {"a": 3}, id="absent"),
        pytest.param(obj(a=THREE), {"a": 0}, {"a": 0}, id="a zero is given"),
        pytest.param(obj(a=THREE), {"a": None}, {"a": 3}, id="null is not allowed"),
        pytest.param(obj(a=THREE | {"nullable": True}), {"a": None}, {"a": None}, id="null is allowed"),
        pytest.param(obj(a=obj(b=THREE)), {}, {}, id="nothing around it"),
        pytest.param(obj(a=obj(b=THREE)), {"a": {}}, {"a": {"b": 3}}, id="within an object"),
        pytest.param(obj(a=obj(b=THREE) | {"default": {}}), {}, {"a": {"b": 3}}, id="within a default"),
        pytest.param(
            obj(a={"type": "array", "items": obj(b=THREE)}),
            {"a": [{}, {"b": 1}]},
            {"a": [{"b": 3}, {"b": 1}]},
            id="in a list",
        ),
        pytest.param(
            obj(a={"type": "object", "additionalProperties": obj(b=THREE)}),
            {"a": {"k": {}}},
            {"a": {"k": {"b": 3}}},
            id="in a map",
        ),
        pytest.param(obj(a=obj(b=THREE)), {"a": "text"}, {"a": "text"}, id="another type stays"),
    ],
)
def test_what_is_filled_in(schema, tree, expected):
    filler(schema)(tree)
    assert tree == expected


def test_a_default_is_each_objects_own():
    fill = filler(obj(a={"type": "array", "items": {"type": "string"}, "default": []}))
    one, other = {}, {}
    fill(one)
    fill(other)
    one["a"].append("x")
    assert other == {"a": []}


def test_a_schema_without_defaults_costs_nothing():
    assert filler(obj(a={"type": "string"})) is None
