"""Field selectors match the zero value of Go if a field is absent."""

import pytest

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape
from mockube.apiserver.kinds.built_in_kinds import NEWEST

ZERO = {Shape.BOOLEAN: "false", Shape.INTEGER: "0", Shape.STRING: ""}
FIELDS = [
    pytest.param(
        kind.resource, field, path, id=f"{kind.resource.api_version} {kind.resource.kind} {field.label}"
    )
    for kind in NEWEST.all
    for field in kind.resource.selectable
    for path in field.paths
]


@pytest.fixture(scope="module")
def schemas():
    return builtin.load()


def shape_at(schemas, resource, path):
    group, version = resource.storage_version or resource.group_version
    found = schemas.kind(f"{group}/{version}" if group else version, resource.kind)
    for step in path:
        found = found.fields[step].type
    return found.shape


@pytest.mark.parametrize(("resource", "field", "path"), FIELDS)
def test_absent_value_of_selectable_field_is_zero_value(schemas, resource, field, path):
    assert field.absent == ZERO[shape_at(schemas, resource, path)]
