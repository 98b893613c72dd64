"""Validation of values by a schema, with upstream's error messages."""

import pytest

from mockube.apimachinery.paths import ROOT
from mockube.apiserver.customresources.list_types import lists_checker
from mockube.apiserver.kinds.jsonschema.validate import checker

AT = ROOT.child("spec", "a")
INTEGER, TEXT = {"type": "integer"}, {"type": "string"}


def messages(schema, value):
    return [
        str(error).removeprefix("spec.a: ").removeprefix("<nil>: ") for error in checker(schema)(value, AT)
    ]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param(INTEGER, 3, id="an integer"),
        pytest.param(INTEGER, 3.0, id="a whole number"),
        pytest.param({"type": "number"}, 3, id="a number"),
        pytest.param(TEXT | {"nullable": True}, None, id="nullable"),
        pytest.param({"x-kubernetes-int-or-string": True}, "50%", id="a text where a number may be"),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, {"a": [None]}, id="anything"),
        pytest.param(TEXT | {"format": "date-time"}, "2026-01-02T03:04:05Z", id="a time"),
        pytest.param(TEXT | {"format": "unheard-of"}, "x", id="unknown format"),
        pytest.param(TEXT | {"pattern": "^[a-z]+$"}, "abc", id="matches pattern"),
        pytest.param(INTEGER | {"minimum": 1, "maximum": 3}, 3, id="within bounds"),
        pytest.param(
            {"type": "object", "required": ["b"], "properties": {"b": {"default": 1}}}, {}, id="filled in"
        ),
    ],
)
def test_valid_value_passes(schema, value):
    assert messages(schema, value) == []


@pytest.mark.parametrize(
    ("schema", "value", "problem"),
    [
        pytest.param(INTEGER, "x", 'Invalid value: "string": spec.a in body must be of type integer: "string"', id="a text"),
        pytest.param(INTEGER, 1.5, 'Invalid value: "number": spec.a in body must be of type integer: "number"', id="a fraction"),
        pytest.param(TEXT, None, 'Invalid value: "null": spec.a in body must be of type string: "null"', id="null"),
        pytest.param(
            {"x-kubernetes-int-or-string": True},
            True,
            'Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean"',
            id="neither number nor string",
        ),
        pytest.param(
            TEXT | {"format": "date-time"},
            "yesterday",
            'Invalid value: "yesterday": spec.a in body must be of type date-time: "yesterday"',
            id="no time",
        ),
        pytest.param(INTEGER | {"minimum": 1}, 0, "Invalid value: 0: spec.a in body should be greater than or equal to 1", id="too small"),
        pytest.param(
            INTEGER | {"minimum": 1, "exclusiveMinimum": True},
            1,
            "Invalid value: 1: spec.a in body should be greater than 1",
            id="not above",
        ),
        pytest.param(INTEGER | {"maximum": 3}, 4, "Invalid value: 4: spec.a in body should be less than or equal to 3", id="too great"),
        pytest.param(INTEGER | {"multipleOf": 2}, 3, "Invalid value: 3: spec.a in body should be a multiple of 2", id="not a multiple"),
        pytest.param(INTEGER | {"multipleOf": 0}, 1, "Invalid value: 0: factor MultipleOf declared for spec.a must be positive: 0", id="multipleOf 0"),
        pytest.param(INTEGER | {"multipleOf": -1}, 1, "Invalid value: -1: factor MultipleOf declared for spec.a must be positive: -1", id="negative multipleOf"),
        pytest.param(TEXT | {"pattern": "^[a-z]+$"}, "UP", "Invalid value: \"UP\": spec.a in body should match '^[a-z]+$'", id="another pattern"),
        pytest.param(TEXT | {"pattern": "^a$"}, "a\n", "Invalid value: \"a\\n\": spec.a in body should match '^a$'", id="a line break at the end"),
        pytest.param(TEXT | {"minLength": 3}, "ab", 'Invalid value: "ab": spec.a in body should be at least 3 chars long', id="too short"),
        pytest.param(TEXT | {"maxLength": 1}, "ab", "Too long: may not be more than 1 byte", id="too long"),
        pytest.param(TEXT | {"enum": ["red", "blue"]}, "green", 'Unsupported value: "green": supported values: "red", "blue"', id="not one of some"),
        pytest.param({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], "Too many: 2: must have at most 1 item", id="too many"),
        pytest.param(TEXT | {"not": {"pattern": "x"}}, "x", 'Invalid value: "": "spec.a" must not validate the schema (not)', id="matches not"),
        pytest.param(
            {"oneOf": [{"required": ["b"]}, {"required": ["c"]}], "type": "object"},
            {},
            'Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found none valid',
            id="no oneOf alternative matches",
        ),
    ],
)  # fmt: skip
def test_invalid_value_is_refused(schema, value, problem):
    assert problem in messages(schema, value)


def test_errors_have_path_of_value():
    item = {"type": "object", "required": ["k"], "properties": {"k": TEXT, "n": INTEGER}}
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": item}}}
    schema["additionalProperties"] = INTEGER
    errors = checker(schema)({"list": [{"k": "x"}, {"n": "y"}], "other": "z"}, ROOT)
    assert sorted(error.field for error in errors) == ["list[1].k", "list[1].n", "other"]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param({"x-kubernetes-list-type": "set"}, ["a", "b", "a"], ['spec.a[2]: Duplicate value: "a"'], id="a set"),
        pytest.param(
            {
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": TEXT}},
            },
            [{"k": "a"}, {"k": "a", "v": 1}],
            ['spec.a[1]: Duplicate value: {"k":"a"}'],
            id="a map",
        ),
        pytest.param({"x-kubernetes-list-type": "set"}, ["a", "b"], [], id="all different"),
    ],
)  # fmt: skip
def test_duplicates_in_set_or_map_list_are_refused(schema, value, expected):
    checks = lists_checker({"type": "array"} | schema)
    assert [str(error) for error in checks(value, AT)] == expected


def test_nested_set_lists_are_checked():
    tags = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    schema = {"type": "array", "items": {"type": "object", "properties": {"tags": tags}}}
    (error,) = lists_checker(schema)([{"tags": ["x"]}, {"tags": ["x", "x"]}], ROOT)
    assert error.field == "[1].tags[1]"


def test_schema_without_set_or_map_lists_has_no_checker():
    assert lists_checker({"type": "object", "properties": {"a": {"type": "array", "items": TEXT}}}) is None


def test_unchanged_invalid_values_are_ratcheted():
    element = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 1}},
    }
    lists = {"type": "array", "items": element}
    schema = {
        "type": "object",
        "properties": {
            "half": {"type": "number", "multipleOf": 0.5},
            "map": lists | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            "atomic": lists,
        },
        "additionalProperties": {"type": "integer", "minimum": 5},
    }
    old = {"half": 2, "map": [{"k": "a", "n": 3}], "atomic": [{"n": 3}], "other": 1}
    added = [{"k": "b", "n": 4}, {"k": "a", "n": 3}]

    def error_fields(new, *old):
        return [error.field for error in checker(schema)(new, ROOT, *old)]

    assert error_fields(old) == ["other", "atomic[0].n", "half", "map[0].n"]
    assert error_fields(old, old) == []
    assert error_fields(old | {"half": 1.5}, old) == []
    changed = {"half": 4, "map": added, "atomic": [{"n": 3}, {"n": 1}], "other": 2}
    assert error_fields(changed, old) == ["other", "atomic[0].n", "half", "map[0].n"]
    assert error_fields(old | {"map": [{"k": "a", "n": 2}]}, old) == ["map[0].n"]


ANY, ONE = (
    "must validate at least one schema (anyOf)",
    "must validate one and only one schema (oneOf). Found none valid",
)
PROPERTIES = {
    "a": {"type": "string"},
    "b": {"type": "integer"},
    "c": {"type": "array", "items": {"type": "string"}},
    "d": {
        "type": "object",
        "properties": {"e": {"type": "string"}, "f": {"type": "string", "nullable": True}},
    },
}
BELOW_ONE = {"properties": {"b": {"maximum": 0}}}


@pytest.mark.parametrize(
    ("combined", "value", "problems"),
    [
        pytest.param(
            {"anyOf": [{"required": ["x"]}, {"properties": {"a": {"minLength": 5}}}]},
            {"a": "hi"},
            [ANY, "a in body should be at least 5 chars long"],
            id="present property counts for the best match",
        ),
        pytest.param(
            {"anyOf": [{"required": ["x", "y"]}, {"required": ["x"]}]},
            {},
            [ANY, "x: Required value", "y: Required value"],
            id="first of equal matches",
        ),
        pytest.param(
            {"oneOf": [{"properties": {"b": {"minimum": 3}}}, {"properties": {"c": {"items": {"pattern": "^z"}}}}]},
            {"b": 1, "c": ["q", "r"]},
            [ONE, "c[0] in body should match '^z'", "c[1] in body should match '^z'"],
            id="every list item is checked for the best match",
        ),
        pytest.param(
            {
                "anyOf": [
                    {"properties": {"b": {"minimum": 3}}, "required": ["y"]},
                    {"properties": {"d": {"properties": {"e": {"enum": ["k"]}, "f": {"maxLength": 1}}}}},
                ]
            },
            {"b": 1, "d": {"e": "q", "f": "rr"}},
            [ANY, 'e: Unsupported value: "q": supported values: "k"', "f: Too long: may not be more than 1 byte"],
            id="nested fields count for the best match",
        ),
        pytest.param(
            {
                "anyOf": [
                    {"anyOf": [{"required": ["x"]}, BELOW_ONE]},
                    {"properties": {"a": {"maxLength": 1}}, "required": ["w", "v"]},
                ]
            },
            {"a": "hi", "b": 1},
            [ANY, "b in body should be less than or equal to 0"],
            id="nested alternatives report an error once",
        ),
        pytest.param(
            {
                "oneOf": [
                    {"allOf": [{"required": ["x"]}, BELOW_ONE]},
                    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                ]
            },
            {"a": "hi", "b": 1},
            [
                ONE,
                "x: Required value",
                "b in body should be less than or equal to 0",
                "must validate all the schemas (allOf). None validated",
            ],
            id="all of an alternative's schemas count",
        ),
        pytest.param(
            {
                "anyOf": [
                    {"not": {"required": ["a"]}},
                    {"properties": {"d": {"properties": {"f": {"minLength": 2}}}}, "required": ["x"]},
                ]
            },
            {"a": "hi", "d": {"f": None}},
            [ANY, "x: Required value"],
            id="null and not are ignored for the best match",
        ),
    ],
)  # fmt: skip
def test_errors_are_those_of_best_matching_alternative(combined, value, problems):
    """The errors are those of kube-apiserver 1.36.3."""
    errors = messages({"type": "object", "properties": PROPERTIES} | combined, value)
    assert [error.endswith(problem) for error, problem in zip(errors, problems, strict=True)] == [True] * len(
        problems
    )


def test_nested_alternatives_take_linear_time():
    schema = {"required": ["x"]}
    for _ in range(60):
        schema = {"anyOf": [schema, {"required": ["y"]}]}
    assert messages({"type": "object"} | schema, {})[-1].endswith("Required value")
