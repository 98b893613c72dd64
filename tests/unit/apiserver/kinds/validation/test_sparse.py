"""Validation accepts whatever passes the schema: fields may be empty or null, and old fields may be gone."""

from itertools import product

import pytest

from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds import kind_rules as validations
from tests.support.server.rows import catalog
from tests.support.server.shapes import ODD, full_value

SCHEMAS = builtin.load()

KINDS = [
    pytest.param(row, SCHEMAS.kind(row.api_version, row.kind), id=f"{row.api_version} {row.kind}")
    for row in catalog().values()
    if row.group_kind in validations.NEWEST.validations
]


def subresources_of(row):
    return ("", *validations.NEWEST.validations[row.group_kind].subresources)


@pytest.mark.thorough
@pytest.mark.parametrize(("row", "type_"), KINDS)
def test_objects_with_missing_fields_are_validated(row, type_):
    objects = [
        {"metadata": {}},
        full_value(type_, {}),
        full_value(type_, {}, nulls=True),
        full_value(type_, ODD),
    ]
    error_lists = [validations.check_create(row, new) for new in objects]
    error_lists += [
        validations.check_update(row, way, new, old)
        for way, new, old in product(subresources_of(row), objects, objects)
    ]
    assert all(isinstance(error, FieldError) and str(error) for found in error_lists for error in found)
    assert all(error_lists[: len(objects)]), "a name is always missing, or odd"


STORED = [
    pytest.param(row.group_kind, id=f"{row.api_version} {row.kind}")
    for row in catalog().values()
    if {"create", "get"} <= set(row.verbs)
]


@pytest.mark.parametrize("kind", STORED)
def test_every_stored_kind_has_validation(kind):
    assert kind in validations.NEWEST.validations
