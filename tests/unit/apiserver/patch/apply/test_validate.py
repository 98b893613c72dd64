import orjson
import pytest

from mockube.apiserver.patch.apply.atoms import TypedError, atom_of_type
from mockube.apiserver.patch.apply.validate import validate
from tests.support.server.typed import BOX

ATOM = atom_of_type(BOX)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"text": None, "labels": None, "names": None, "one": None, "containers": None, "plain": None},
        {"text": "a", "number": 1, "flag": True, "either": "50%", "labels": {"a": "b"}},
        {"number": 1.5, "either": {"a": 1}, "names": ["a", "b"], "plain": ["a", "a"]},
        {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]},
        {"free": [1, {"a": None}], "raw": {"a": [1, "b"]}},
    ],
    ids=orjson.dumps,
)
def test_valid_value_passes(value):
    validate(ATOM, value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "expected map, got &{[]}"),
        ({"text": 5}, ".text: expected string, got &value.valueUnstructured{Value:5}"),
        ({"text": {"a": 1}}, '.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":1}}'),
        ({"number": "x"}, ".number: expected numeric (int or float), got string"),
        ({"number": True}, ".number: expected numeric (int or float), got bool"),
        ({"flag": "x"}, ".flag: expected boolean, got &{x}"),
        ({"labels": "x"}, ".labels: expected map, got &{x}"),
        ({"labels": {"a": 1}}, ".labels.a: expected string, got &value.valueUnstructured{Value:1}"),
        ({"names": "x"}, ".names: expected list, got &{x}"),
        ({"plain": ["a", 1]}, ".plain[1]: expected string, got &value.valueUnstructured{Value:1}"),
        ({"bogus": 1}, ".bogus: field not declared in schema"),
        ({"one": {"c": 1}}, ".one.c: field not declared in schema"),
        ({"names": ["a", "a"]}, '.names: duplicate entries for key [="a"]'),
        (
            {"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]},
            '.ports: duplicate entries for key [port=80,protocol="TCP"]',
        ),
        (
            {"containers": [{"name": "a", "image": 1}]},
            '.containers[name="a"].image: expected string, got &value.valueUnstructured{Value:1}',
        ),
        (
            {"containers": [{"image": "x"}]},
            ('.containers: element 0: associative list with keys has an element that omits all key fields ["name"]'
            " (and doesn't have default values for any key fields)"),
        ),
        ({"containers": [None]}, ".containers: element 0: associative list with keys may not have a null element"),
        ({"containers": ["a"]}, ".containers: element 0: associative list with keys may not have non-map elements"),
        ({"names": [{}]}, ".names: element 0: associative list without keys has an element that's a map type"),
        ({"names": [[]]}, ".names: element 0: not supported: associative list with lists as elements"),
        ({"names": [None]}, ".names: element 0: associative list without keys has an element that's an explicit null"),
        (
            {"text": 1, "number": "x"},
            ("errors:\n  .text: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .number: expected numeric (int or float), got string"),
        ),
    ],
)  # fmt: skip
def test_invalid_value_is_refused(value, message):
    with pytest.raises(TypedError) as refused:
        validate(ATOM, value)
    assert str(refused.value) == message


def test_duplicates_are_allowed_in_live_object():
    validate(ATOM, {"names": ["a", "a"]}, duplicates=True)
