"""Fields that a schema does not specify are pruned and reported by path."""

import pytest

from mockube.apiserver.kinds.jsonschema.pruning import root_pruner

TEXT = {"type": "string"}
ANY = {"x-kubernetes-preserve-unknown-fields": True}


def obj(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "tree", "expected", "dropped"),
    [
        pytest.param(obj(a=TEXT), {"a": "x"}, {"a": "x"}, [], id="no unknown fields"),
        pytest.param(obj(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}, ["b"], id="an unknown field"),
        pytest.param(obj(a=obj(b=TEXT)), {"a": {"c": {}}}, {"a": {}}, ["a.c"], id="a nested one"),
        pytest.param(
            obj(a={"type": "array", "items": obj(b=TEXT)}),
            {"a": [{"b": "x"}, {"c": 1}]},
            {"a": [{"b": "x"}, {}]},
            ["a[1].c"],
            id="in a list",
        ),
        pytest.param(
            obj(a={"type": "object", "additionalProperties": obj(b=TEXT)}),
            {"a": {"k": {"b": "x", "c": 1}}},
            {"a": {"k": {"b": "x"}}},
            ["a.k.c"],
            id="in a map",
        ),
        pytest.param(
            obj(a=ANY), {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}, [], id="preserved unknown fields"
        ),
        pytest.param(
            obj(a=obj(b=obj(c=TEXT)) | ANY),
            {"a": {"x": 1, "b": {"y": 1}}},
            {"a": {"x": 1, "b": {}}},
            ["a.b.y"],
            id="specified fields are pruned within a preserved object",
        ),
        pytest.param(
            obj(),
            {"apiVersion": "v", "kind": "K", "metadata": {"x": 1}},
            {"apiVersion": "v", "kind": "K", "metadata": {"x": 1}},
            [],
            id="the head of an object",
        ),
        pytest.param(
            obj(a=obj() | {"x-kubernetes-embedded-resource": True}),
            {"a": {"kind": "K", "metadata": {"name": "n"}, "spec": 1}},
            {"a": {"kind": "K", "metadata": {"name": "n"}}},
            ["a.spec"],
            id="an object in an object",
        ),
        pytest.param(
            obj(a=obj(b=TEXT)),
            {"a": "no object"},
            {"a": "no object"},
            [],
            id="value of another type is unchanged",
        ),
        pytest.param(obj(a=TEXT), {"a": {"b": 1}}, {"a": {}}, ["a.b"], id="an object in a text's place"),
        pytest.param(
            obj(a=TEXT), {"a": [1, {"b": 1}]}, {"a": [1, {}]}, ["a[1].b"], id="a list in a text's place"
        ),
        pytest.param(
            obj(a=obj(b=TEXT)), {"a": [{"b": "x"}]}, {"a": [{}]}, ["a[0].b"], id="a list in an object's place"
        ),
        pytest.param(
            obj(a={"type": "array", "items": obj(b=TEXT)}),
            {"a": {"b": "x"}},
            {"a": {}},
            ["a.b"],
            id="an object in a list's place",
        ),
    ],
)
def test_unknown_fields_are_pruned(schema, tree, expected, dropped):
    unknown = []
    assert root_pruner(schema)(tree, unknown) == expected
    assert unknown == dropped
