"""Fields of disabled feature gates are dropped from an object unless the old object uses them."""

import orjson
import pytest

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.strategy import EACH_ITEM, DisabledFields, Gate

TWO = DisabledFields((Gate(("a.*.l.b", "c"), drops_empty=True), Gate(("d.e",))))


@pytest.mark.parametrize(
    ("new", "old", "left"),
    [
        (
            {"a": [{"l": {"b": 1}, "x": 1}, {"l": {"b": 1, "x": 1}}, {"l": {}}]},
            None,
            {"a": [{"x": 1}, {"l": {"x": 1}}, {"l": {}}]},
        ),
        ({"a": {"k": {"l": {"b": 1, "x": 1}}}, "c": 1}, {}, {"a": {"k": {"l": {"x": 1}}}}),
        ({"a": [{"l": {"b": 1}}], "c": 2}, {"c": 1}, {"a": [{"l": {"b": 1}}], "c": 2}),
        ({"c": 2, "d": {"e": 1}}, {"d": {"e": 0}}, {"d": {"e": 1}}),
        ({"d": {"e": 1}}, {"c": 1}, {"d": {}}),
        ({"x": 1}, {"c": 1}, {"x": 1}),
        ({"a": None, "c": None, "d": {"e": 1}}, {"a": None, "d": None}, {"a": None, "c": None, "d": {}}),
    ],
)
def test_disabled_field_is_dropped_unless_old_object_uses_it(new, old, left):
    before = orjson.loads(orjson.dumps(old))
    TWO.drop(new, old)
    assert (new, old) == (left, before)


KINDS_WITH_GATES = [kind for kind in NEWEST.all if kind.strategy and kind.strategy.disabled.paths]


@pytest.mark.parametrize("kind", KINDS_WITH_GATES, ids=lambda kind: kind.resource.name)
def test_every_gated_field_exists(kind):
    schemas = builtin.load()
    for path in kind.strategy.disabled.paths:
        found = schemas.kind(kind.resource.api_version, kind.resource.kind)
        for step in path.split("."):
            found = found.items if step == EACH_ITEM else found.fields[step].type
        assert found.shape in Shape
