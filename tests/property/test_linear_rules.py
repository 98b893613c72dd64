"""Defaults, validation and warnings of every kind take linear time in the length of each list and map.

Every list and map of every kind is grown, with distinct members and with equal ones, alone and together with the others
of the same struct, up to the largest body; twice as many may take 2.5 times as long at most. A field that several kinds
share is grown in the first of them.
"""

from functools import cache

import orjson
import pytest

from mockube.apimachinery import status
from mockube.apimachinery.schema.builtin import load
from mockube.apiserver.kinds.built_in_kinds import GROUPS, NEWEST
from mockube.apiserver.kinds.kind_rules import Defaulter, check_create, check_update, warn_create, warn_update
from mockube.apiserver.request.endpoints import MAX_BODY
from mockube.apiserver.schema.decode import Decoder
from mockube.component_base.clock import RealClock
from tests.support.hostile.doubling import Growth, check_growth, size_of_run
from tests.support.hostile.grown_objects import growing, growing_together

pytestmark = [pytest.mark.slow, pytest.mark.timeout(size_of_run(600, 3600))]

MEMBERS = size_of_run(500, 8_000)
PER_MEMBER = size_of_run(10e-6, 20e-6)
"""Seconds. Cheaper cases are not repeated: a quadratic rule makes half as many comparisons per item as there are members. One in
Python takes 40 ns or more; one of `in` with a list 9 ns, which only the full size shows.
"""

FEW_MEMBERS = 100

FIELDS_PER_TEST = 50
LARGE = ("pods", "customresourcedefinitions")
"""Kinds with so many fields, or so deep ones, that they take as long as all others."""

SCHEMAS = load()
DEFAULTS = Defaulter(SCHEMAS, clock=RealClock())


def members_of_body(field):
    """Return how many members the field gets: no more than a request can have, where many fields are grown together."""
    few, twice_as_many = (len(orjson.dumps(field.make(size))) for size in (FEW_MEMBERS, 2 * FEW_MEMBERS))
    per_member = (twice_as_many - few) / FEW_MEMBERS
    return min(MEMBERS, int(MAX_BODY / per_member))


def copy_tree(tree):
    return orjson.loads(orjson.dumps(tree))


_FIXED = ("apiVersion", "kind", "namespace", "uid", "resourceVersion")


def updated_value(name, value):
    """Return what an update changes: each text and number with a digit, except identifiers of the object."""
    if isinstance(value, dict):
        return {member: updated_value(member, item) for member, item in value.items()}
    if isinstance(value, list):
        return [updated_value("", item) for item in value]
    if isinstance(value, str):
        is_fixed = name in _FIXED or value.endswith("Z")  # times stay as they are written
        return value if is_fixed or not any(map(str.isdigit, value)) else f"{value}1"
    return value + 1 if type(value) is int else value


def format_errors(resource, found):
    status.invalid(resource.group_kind, "x", [*found]).status()


class Case:
    """An object, and the object that it replaces."""

    def __init__(self, tree):
        self.tree, self.old, self.text = tree, copy_tree(tree), orjson.dumps(tree)
        self.new = {**tree, "metadata": {**tree["metadata"], "labels": {"x": "y"}}}
        self.altered = updated_value("", self.old) | {"metadata": self.new["metadata"]}


def processing_functions(resource):
    """Yield all functions that process an object of a kind, by name."""
    kind = SCHEMAS.kind(resource.api_version, resource.kind)
    yield "decode", lambda case: Decoder().decode(kind, case.tree, text=case.text)
    yield "default", lambda case: DEFAULTS.default_object(resource.api_version, resource.kind, case.old)
    yield "create", lambda case: format_errors(resource, check_create(resource, case.tree))
    yield "warn", lambda case: [*warn_create(resource, case.tree)]
    rules = NEWEST.validations.get(resource.group_kind)
    for name in ("", *(rules.subresources if rules else ())):
        yield (
            f"update {name}",
            lambda case, name=name: format_errors(resource, check_update(resource, name, case.new, case.old)),
        )
        yield (
            f"update of all members {name}",
            lambda case, name=name: format_errors(
                resource, check_update(resource, name, case.altered, case.old)
            ),
        )
        yield (
            f"warn of update {name}",
            lambda case, name=name: [*warn_update(resource, name, case.new, case.old)],
        )


def cases():
    seen: set[tuple[str, str]] = set()
    structs: set[str] = set()
    for resource in (resource for group in GROUPS for resource in group.resources):
        kind = SCHEMAS.kind(resource.api_version, resource.kind)
        if kind is not None and "create" in resource.verbs:
            found = [*growing(kind, seen), *growing_together(kind, structs)]
            marks = [pytest.mark.release] if resource.name in LARGE else []
            # Pods have 345 fields that grow: workers share them.
            for start in range(0, len(found), FIELDS_PER_TEST):
                part = "" if len(found) <= FIELDS_PER_TEST else f" from {start}"
                fields = found[start : start + FIELDS_PER_TEST]
                yield pytest.param(
                    resource, fields, id=f"{resource.name}.{resource.group}{part}", marks=marks
                )


@pytest.mark.parametrize(("resource", "fields"), [*cases()])
def test_validation_of_kinds_takes_linear_time(resource, fields):
    slow = {}
    for field in fields:
        make = cache(lambda size, field=field: Case(field.make(size)))
        members = members_of_body(field)
        for name, way in processing_functions(resource):
            try:
                check_growth(make(members), make, way, members, enough=members * PER_MEMBER)
            except Growth as growth:
                slow[f"{field.field}, {name}"] = str(growth)
    assert not slow
