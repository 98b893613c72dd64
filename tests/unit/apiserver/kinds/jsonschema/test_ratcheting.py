"""Which values an update leaves unchanged (ratcheting), as in a real kube-apiserver 1.36."""

import pytest

from mockube.apiserver.kinds.jsonschema.ratcheting import is_unchanged

TEXT = {"type": "string"}
ELEMENT = {"type": "object", "properties": {"n": TEXT, "v": TEXT}}
MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["n"],
    "items": ELEMENT,
}
SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
VALUES = {"type": "object", "additionalProperties": MAP}
X, Y = {"n": "x", "v": "1"}, {"n": "y"}


@pytest.mark.parametrize(
    ("schema", "value", "old", "expected"),
    [
        pytest.param(MAP, [X, Y], [Y, X], True, id="elements of a map have no order"),
        pytest.param(MAP, [X, {"n": "y", "v": "2"}], [Y, X], False, id="an element of a map differs"),
        pytest.param(MAP, [X], [X, Y], False, id="removed element"),
        pytest.param(MAP, [X, {"n": "z"}], [X, Y], False, id="added element"),
        pytest.param(MAP, [], [], True, id="no elements"),
        pytest.param(VALUES, {"a": [X, Y]}, {"a": [Y, X]}, True, id="within a map of values"),
        pytest.param(VALUES, {"a": [X]}, {"b": [X]}, False, id="another member"),
        pytest.param(SET, ["a", "b"], ["b", "a"], False, id="a set has an order"),
        pytest.param(SET, ["a", "b"], ["a", "b"], True, id="the same set"),
        pytest.param(OPEN, {}, {}, True, id="an open object without members"),
        pytest.param(OPEN, {"a": 1}, {"a": 1}, False, id="undeclared fields are not compared"),
        pytest.param(ELEMENT, X, X, True, id="declared members"),
        pytest.param(TEXT, 1, 1.0, False, id="numbers of other types"),
    ],
)
def test_unchanged_values_are_recognised(schema, value, old, expected):
    assert is_unchanged(schema, value, old) is expected
