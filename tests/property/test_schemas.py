"""Validation of any value by any schema returns errors, and never raises."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.customresources.defaulting import filler
from mockube.apiserver.customresources.list_types import lists_checker
from mockube.apiserver.customresources.types import type_of
from mockube.apiserver.kinds.apiextensions.schemas import check_schema
from mockube.apiserver.kinds.jsonschema.pruning import pruner
from mockube.apiserver.kinds.jsonschema.validate import checker
from mockube.apiserver.patch.apply.atoms import TypedError, atom_of_type
from mockube.apiserver.patch.apply.compare import compare
from mockube.apiserver.patch.apply.merge import merge
from mockube.apiserver.patch.apply.typed_fields import all_fields, applied_fields
from mockube.apiserver.patch.apply.validate import validate

NUMBERS = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 1, -1, 2.0, 1e3, 0.1, 0.3, 1e300, 5e-324, 2**63, 2.0**63, -0.0]),
)
TEXTS = st.one_of(
    st.text(max_size=8), st.sampled_from(["a", "k", "2026-01-02", "1h", "a@b", "::1", "(", "http://["])
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abk"), inner, max_size=3)
    ),
    max_leaves=12,
)
FORMATS = st.sampled_from(
    [
        "int32",
        "int64",
        "float",
        "double",
        "date",
        "date-time",
        "duration",
        "byte",
        "ipv4",
        "ipv6",
        "cidr",
        "email",
        "hostname",
        "uri",
        "uuid",
        "isbn",
        "creditcard",
        "ssn",
        "hexcolor",
        "rgbcolor",
        "mac",
        "bsonobjectid",
        "password",
        "other",
    ]
)
PATTERNS = st.sampled_from(["^(a+)+$", "^[a-z]+$", r"\pL", "(?i)a|b", "x{2,5}", "", "("])
LIMITS = st.integers(0, 5)


def optional_fields(inner):
    """Every field of a schema, each with values of its own type."""
    return {
        "format": FORMATS,
        "pattern": PATTERNS,
        "nullable": st.booleans(),
        "default": VALUES,
        "enum": st.lists(VALUES, min_size=1, max_size=4),
        "multipleOf": NUMBERS.map(float),
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": st.booleans(),
        "exclusiveMaximum": st.booleans(),
        "minLength": LIMITS,
        "maxLength": LIMITS,
        "minItems": LIMITS,
        "maxItems": LIMITS,
        "minProperties": LIMITS,
        "maxProperties": LIMITS,
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from("abk"), max_size=2),
        "properties": st.dictionaries(st.sampled_from("abk"), inner, max_size=3),
        "additionalProperties": st.one_of(st.booleans(), inner),
        "items": inner,
        "allOf": st.lists(inner, max_size=2),
        "anyOf": st.lists(inner, max_size=2),
        "oneOf": st.lists(inner, max_size=2),
        "not": inner,
        "x-kubernetes-preserve-unknown-fields": st.booleans(),
        "x-kubernetes-embedded-resource": st.booleans(),
        "x-kubernetes-int-or-string": st.booleans(),
        "x-kubernetes-list-type": st.sampled_from(["atomic", "set", "map"]),
        "x-kubernetes-list-map-keys": st.lists(st.sampled_from("abk"), min_size=1, max_size=2),
        "x-kubernetes-map-type": st.sampled_from(["atomic", "granular"]),
    }


TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPES, "format": FORMATS}),
    lambda inner: st.fixed_dictionaries({}, optional={"type": TYPES} | optional_fields(inner)),
    max_leaves=5,
)


def errors_of_definition(schema):
    return [*check_schema({"openAPIV3Schema": schema}, ROOT)]


@settings(max_examples=400)
@given(schema=SCHEMAS)
def test_any_schema_is_accepted_or_refused(schema):
    assert all(isinstance(error, FieldError) and str(error) for error in errors_of_definition(schema))


@settings(max_examples=400)
@given(schema=SCHEMAS, value=VALUES)
def test_any_value_is_accepted_or_refused(schema, value):
    """Also for schemas that would be refused: one may be stored already."""
    found = [*checker(schema)(value, ROOT.child("spec"))]
    lists = lists_checker(schema)
    found += lists(value, ROOT.child("spec")) if lists is not None else ()
    assert all(isinstance(error, FieldError) and str(error) for error in found)


@settings(max_examples=200)
@given(schema=SCHEMAS, value=VALUES)
def test_any_value_is_pruned_and_defaulted(schema, value):
    made = pruner(schema)(value, [])
    fill = filler(schema)
    if fill is not None:
        fill(made)


@settings(max_examples=400)
@given(schema=SCHEMAS, before=VALUES, after=VALUES)
def test_any_value_is_applied_or_refused(schema, before, after):
    atom = atom_of_type(type_of(schema))
    for step in (
        lambda: all_fields(atom, after),
        lambda: compare(atom, before, after),
        lambda: (validate(atom, after), applied_fields(atom, after), merge(atom, before, after)),
    ):
        with contextlib.suppress(TypedError):
            step()


@pytest.mark.parametrize("nest", ["items", "not", "additionalProperties"])
def test_schemas_and_values_nest_as_deep_as_bodies_do(nest):
    schema, value = {"type": "string"}, "x"
    for _ in range(190):
        schema = {"type": "array" if nest == "items" else "object", nest: schema}
        value = [value] if nest == "items" else {"a": value}
    errors_of_definition(schema)
    [*checker(schema)(value, ROOT)]
    made = pruner(schema)(value, [])
    fill, lists = filler(schema), lists_checker(schema)
    assert fill is None
    assert lists is None
    atom = atom_of_type(type_of(schema))
    compare(atom, value, made)
