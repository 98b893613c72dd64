"""Definitions and custom objects are processed in time linear in their size."""

import orjson
import pytest

from mockube.apimachinery.paths import ROOT
from mockube.apiserver.customresources.custom_version import CustomVersion, pack_schema
from mockube.apiserver.customresources.defaulting import filler
from mockube.apiserver.customresources.list_types import lists_checker
from mockube.apiserver.customresources.types import type_of
from mockube.apiserver.kinds.apiextensions.schemas import check_schema
from mockube.apiserver.kinds.jsonschema.pruning import root_pruner
from mockube.apiserver.kinds.jsonschema.validate import MAX_ERRORS, checker
from tests.support.hostile.doubling import check_linear

TEXT = {"type": "string"}
LIST = "x-kubernetes-list-type"
KEYS = "x-kubernetes-list-map-keys"
ITEM = {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": {"type": "number", "default": 1}}}


def array_schema(items, **others):
    return {"type": "object", "properties": {"a": {"type": "array", "items": items} | others}}


SCHEMAS = {
    "fields": lambda size: {"type": "object", "properties": {f"f{at}": TEXT for at in range(size)}},
    "patterns": lambda size: {
        "type": "object",
        "properties": {f"f{at}": TEXT | {"pattern": f"^a{at}b?$"} for at in range(size // 8)},
    },
    "alternatives": lambda size: TEXT | {"anyOf": [{"maxLength": at} for at in range(size)]},
    "allowed values": lambda size: array_schema(TEXT | {"enum": [f"v{at}" for at in range(size)]}),
    "required": lambda size: {
        "type": "object",
        "required": [f"f{at}" for at in range(size)],
        "properties": {f"f{at}": TEXT for at in range(size)},
    },
    "keys": lambda size: array_schema(
        {
            "type": "object",
            "required": [f"k{at}" for at in range(size)],
            "properties": {f"k{at}": TEXT for at in range(size)},
        },
        **{LIST: "map", KEYS: [f"k{at}" for at in range(size)]},
    ),
    "a pattern": lambda size: TEXT | {"pattern": "(a|b)" * size},
}


@pytest.mark.timed
@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_validated_and_compiled_in_linear_time(name):
    def run(schema):
        [*check_schema({"openAPIV3Schema": schema}, ROOT)]
        checker(schema)
        root_pruner(schema)
        filler(schema)
        lists_checker(schema)
        type_of(schema)

    check_linear(SCHEMAS[name], run, 1500)


VALUES = {
    "items of a set": (array_schema(TEXT, **{LIST: "set"}), lambda size: [f"v{at}" for at in range(size)]),
    "the same item": (array_schema(TEXT, **{LIST: "set"}), lambda size: ["v"] * size),
    "items of a map": (array_schema(ITEM, **{LIST: "map", KEYS: ["k"]}), lambda size: [{"k": f"{at}"} for at in range(size)]),
    "items that are none": (array_schema(ITEM, **{LIST: "map", KEYS: ["k"]}), lambda size: [1] * size),
    "objects in a set": (
        array_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, **{LIST: "set"}),
        lambda size: [{"k": at} for at in range(size)],
    ),
    "allowed values": (array_schema({"type": "integer", "enum": [*range(5000)]}), lambda size: [at % 5000 for at in range(size)]),
    "values that are not allowed": (array_schema(TEXT | {"enum": ["a", "b"]}), lambda size: ["c"] * size),
    "fractions": (array_schema({"type": "integer", "format": "int32"}), lambda size: [1.5] * size),
    "members": (
        {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": TEXT}}},
        lambda size: {f"m{at}": "x" for at in range(size)},
    ),
    "unknown fields": (
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": TEXT}}}},
        lambda size: {f"m{at}": "x" for at in range(size)},
    ),
    "a text with a pattern": (
        {"type": "object", "properties": {"a": TEXT | {"pattern": "^(a+)+$"}}},
        lambda size: "a" * (100 * size) + "!",
    ),
    "numbers": (array_schema({"type": "number", "multipleOf": 0.1}), lambda size: [0.3] * size),
}  # fmt: skip


@pytest.mark.timed
@pytest.mark.parametrize("name", VALUES)
def test_value_is_handled_in_linear_time(name):
    schema, make_value = VALUES[name]
    check, prune, fill, lists = checker(schema), root_pruner(schema), filler(schema), lists_checker(schema)

    def run(text):
        tree = prune(orjson.loads(text), [])
        if fill is not None:
            fill(tree)
        [*check(tree, ROOT)]
        if lists is not None:
            [*lists(tree, ROOT)]

    check_linear(lambda size: orjson.dumps({"a": make_value(size)}), run, 10_000)


@pytest.mark.timed
@pytest.mark.parametrize("kind", [str, int])
def test_items_take_linear_time_with_an_enum_that_grows_with_them(kind):
    def run(values):
        schema = array_schema({"type": "string" if kind is str else "integer", "enum": values})
        assert not [*checker(schema)({"a": values}, ROOT)]

    check_linear(lambda size: [kind(at) for at in range(size)], run, 3000)


@pytest.mark.timed
def test_many_fields_of_short_value_take_linear_time():
    def checker_and_items(size):
        fields = {f"f{at}": TEXT for at in range(size)}
        return checker(array_schema({"type": "object", "properties": fields})), {"a": [{}] * size}

    check_linear(checker_and_items, lambda made: [*made[0](made[1], ROOT)], 1500)


@pytest.mark.thorough
def test_number_of_missing_field_errors_is_bounded():
    fields = {f"f{at}": TEXT for at in range(5000)}
    check = checker(array_schema({"type": "object", "required": [*fields], "properties": fields}))
    assert len([*check({"a": [{}] * 5000}, ROOT)]) < 2 * MAX_ERRORS + 5000


@pytest.mark.thorough
def test_long_enum_is_truncated_in_repeated_errors():
    allowed = [f"value-{at}" for at in range(10_000)]
    schema = array_schema(TEXT | {"enum": allowed})
    custom = CustomVersion(
        row=None, packed_schema=pack_schema(schema), strategy=None, printer=None, metadata=None
    )
    errors = custom.check({"a": ["x"] * 1000})
    assert 1 <= len(errors) < 30
    assert all("supported values" in error.detail for error in errors)
