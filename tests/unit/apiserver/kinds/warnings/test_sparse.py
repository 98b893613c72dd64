"""Warnings handle whatever passes the schema: fields may be empty or null, and old fields may be gone."""

from itertools import product

import pytest

from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds import kind_rules as registry
from tests.support.server.rows import catalog
from tests.support.server.shapes import ODD, full_value

SCHEMAS = builtin.load()
KINDS = [
    pytest.param(row, SCHEMAS.kind(row.api_version, row.kind), id=f"{row.api_version} {row.kind}")
    for row in catalog().values()
    if row.group_kind in registry.NEWEST.warnings
]


PODS = catalog()["", "v1", "pods"]


@pytest.mark.thorough
@pytest.mark.parametrize(("row", "type_"), KINDS)
def test_objects_with_missing_fields_get_warnings(row, type_):
    objects = [
        {"metadata": {}},
        full_value(type_, {}),
        full_value(type_, {}, nulls=True),
        full_value(type_, ODD),
    ]
    ways = ("", *registry.NEWEST.warnings[row.group_kind].subresources)
    warning_lists = [[*registry.warn_create(row, new)] for new in objects]
    warning_lists += [
        [*registry.warn_update(row, way, new, old)] for way, new, old in product(ways, objects, objects)
    ]
    assert all(isinstance(warning, str) and warning for found in warning_lists for warning in found)


def pod_with_duplicates(count):
    """Return a pod in which all items of each list are duplicates."""
    items = [{"key": "k", "path": "p"}] * count
    ports = [{"containerPort": 80, "protocol": "TCP"}] * count
    spec = {"volumes": [{"configMap": {"items": items}}] * 2, "containers": [{"name": "c", "ports": ports}]}
    return {"metadata": {"name": "a"}, "spec": spec}


@pytest.mark.thorough
def test_number_of_quadratic_warnings_is_bounded():
    few, many = (len([*registry.warn_create(PODS, pod_with_duplicates(count))]) for count in (500, 1000))
    assert few == many
