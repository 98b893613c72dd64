"""Defaults of a schema are applied where the field is absent."""

import pytest

from mockube.apimachinery.schema import builtin
from mockube.apiserver.customresources.defaulting import defaults_filler, filler


def obj(**properties):
    return {"type": "object", "properties": properties}


THREE = {"type": "integer", "default": 3}


@pytest.mark.parametrize(
    ("schema", "tree", "expected"),
    [
        pytest.param(obj(a=THREE), {}, {"a": 3}, id="absent"),
        pytest.param(obj(a=THREE), {"a": 0}, {"a": 0}, id="explicit zero"),
        pytest.param(obj(a=THREE), {"a": None}, {"a": 3}, id="null is not allowed"),
        pytest.param(obj(a=THREE | {"nullable": True}), {"a": None}, {"a": None}, id="null is allowed"),
        pytest.param(obj(a=obj(b=THREE)), {}, {}, id="missing parent"),
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
        pytest.param(
            obj(a=obj(b=THREE)), {"a": "text"}, {"a": "text"}, id="value of another type is unchanged"
        ),
    ],
)
def test_defaults_of_schema_are_applied(schema, tree, expected):
    filler(schema)(tree)
    assert tree == expected


def test_default_is_not_shared_between_objects():
    fill = filler(obj(a={"type": "array", "items": {"type": "string"}, "default": []}))
    one, other = {}, {}
    fill(one)
    fill(other)
    one["a"].append("x")
    assert other == {"a": []}


def test_schema_without_defaults_needs_no_defaulting():
    assert filler(obj(a={"type": "string"})) is None


EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
TEXT = {"type": "string"}
METADATA = obj(name=TEXT | {"default": "Bar"}, unknown=TEXT | {"default": "unknown"})
EXPECTED = {"apiVersion": "foos/v1", "kind": "Foo", "metadata": {"name": "Bar"}}
WHOLE = EXPECTED | {"metadata": {"name": "Bar", "unknown": "unknown"}}


@pytest.mark.parametrize(
    ("schema", "tree", "expected"),
    [
        pytest.param(EMBEDDED | {"default": WHOLE}, {}, EXPECTED, id="the default of the object"),
        pytest.param(
            EMBEDDED | obj(metadata={"type": "object", "default": WHOLE["metadata"]}),
            {"a": {}},
            {"metadata": {"name": "Bar"}},
            id="the default of its metadata",
        ),
        pytest.param(
            EMBEDDED | obj(metadata=METADATA),
            {"a": {"metadata": {}}},
            {"metadata": {"name": "Bar"}},
            id="the default of an unknown field",
        ),
        pytest.param(
            obj(b=EMBEDDED | {"x-kubernetes-preserve-unknown-fields": True}) | {"default": {"b": WHOLE}},
            {},
            {"b": EXPECTED},
            id="a default around the object",
        ),
        pytest.param(
            {"type": "array", "items": EMBEDDED, "default": [WHOLE]}, {}, [EXPECTED], id="objects in a list"
        ),
        pytest.param(
            {"type": "array", "items": EMBEDDED | obj(metadata=METADATA)},
            {"a": [{"metadata": {}}]},
            [{"metadata": {"name": "Bar"}}],
            id="a default in a list",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": EMBEDDED, "default": {"b": WHOLE}},
            {},
            {"b": EXPECTED},
            id="objects in a map",
        ),
    ],
)
def test_unknown_metadata_of_embedded_default_is_pruned(schema, tree, expected):
    metadata = builtin.load().definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    defaults_filler(obj(a=schema), metadata)(tree)
    assert tree == {"a": expected}
