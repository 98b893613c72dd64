"""Rules can be asked of whatever a schema lets through: what is there may hold nothing, and what was may be gone."""

from itertools import product

import pytest

from apimachinery.errors import FieldError
from apimachinery.schema import builtin
from apimachinery.schema.model import Shape
from apiserver.app import catalog
from apiserver.validation import registry

SCHEMAS = builtin.load()

ABSENT = object()

ODD = {
    Shape.STRING: "Odd Text!",
    Shape.INTEGER: -1,
    Shape.NUMBER: -0.5,
    Shape.BOOLEAN: True,
    Shape.QUANTITY: "-1500m",
    Shape.INT_OR_STRING: "-1%",
    Shape.TIME: "2026-01-01T00:00:00Z",
    Shape.MICRO_TIME: "2026-01-01T00:00:00.000000Z",
    Shape.BYTES: "AA==",
    Shape.ANY: {},
}
"""A value of each shape that few rules take."""


def everything(type_, scalars, *, nulls=False, inside=()):
    """All that there can be of a type, once or twice each, and of scalars what is given.

    `nulls`: lists and maps that Go never leaves out are null instead.
    """
    if type_.shape is Shape.STRUCT:
        if type_.name in inside:
            return {}
        inside = (*inside, type_.name)
        made = {
            name: None
            if nulls and is_null(field)
            else everything(field.type, scalars, nulls=nulls, inside=inside)
            for name, field in type_.fields.items()
        }
        return {name: value for name, value in made.items() if value is not ABSENT}
    if type_.shape in (Shape.LIST, Shape.MAP):
        item = everything(type_.items, scalars, nulls=nulls, inside=inside)
        if type_.shape is Shape.LIST:
            return [] if item is ABSENT else [item, item]
        return {} if item is ABSENT else {"Odd Key!": item}
    return scalars.get(type_.shape, ABSENT)


def is_null(field):
    return field.type.shape in (Shape.LIST, Shape.MAP) and not field.omit_empty


KINDS = [
    pytest.param(row, SCHEMAS.kind(row.api_version, row.kind), id=f"{row.api_version} {row.kind}")
    for row in catalog().values()
    if row.group_kind in registry.VALIDATIONS
]


def ways(row):
    return ("", *registry.VALIDATIONS[row.group_kind].subresources)


@pytest.mark.parametrize(("row", "type_"), KINDS)
def test_nothing_that_may_be_missing_is_missed(row, type_):
    objects = [
        {"metadata": {}},
        everything(type_, {}),
        everything(type_, {}, nulls=True),
        everything(type_, ODD),
    ]
    told = [registry.check_create(row, new) for new in objects]
    told += [
        registry.check_update(row, way, new, old) for way, new, old in product(ways(row), objects, objects)
    ]
    assert all(isinstance(error, FieldError) and str(error) for found in told for error in found)
    assert all(told[: len(objects)]), "a name is always missing, or odd"


STORED = [
    pytest.param(row.group_kind, id=f"{row.api_version} {row.kind}")
    for row in catalog().values()
    if {"create", "get"} <= set(row.verbs)
]


@pytest.mark.parametrize("kind", STORED)
def test_every_kind_that_is_stored_has_rules(kind):
    assert kind in registry.VALIDATIONS
