import orjson
import pytest

from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.patch.apply.fieldset import of_paths
from mockube.apiserver.patch.apply.typed_fields import (
    all_fields,
    applied_fields,
    ensure_named_fields,
    remove,
)
from tests.support.server.fields import field_paths, place
from tests.support.server.typed import BOX, named

ATOM = atom_of_type(BOX)


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({}, []),
        ({"text": "a"}, [".text"]),
        ({"text": None}, [".text"]),
        ({"one": {"a": "1"}}, [".one.a"]),
        ({"one": {}}, [".one"]),
        ({"one": None}, [".one"]),
        ({"labels": {"a": "1"}}, [".labels.a"]),
        ({"atomic_map": {"a": "1"}}, [".atomic_map"]),
        ({"whole": {"a": "1"}}, [".whole"]),
        ({"plain": ["a"]}, [".plain"]),
        ({"plain": []}, [".plain"]),
        ({"names": ["a", "b"]}, ['.names[="a"]', '.names[="b"]']),
        ({"names": []}, []),
        ({"names": None}, [".names"]),
        ({"names": ["a", "a"]}, ['.names[="a"]']),
        (
            {"ports": [{"port": 80}]},
            ['.ports[port=80,protocol="TCP"]', '.ports[port=80,protocol="TCP"].port'],
        ),
        ({"ports": [{"port": 80}, {"port": 80}]}, ['.ports[port=80,protocol="TCP"]']),
        ({"ones": {"x": {"a": "1"}}}, [".ones.x", ".ones.x.a"]),
        ({"free": {"x": {"a": 1}, "y": [{"b": 1}]}}, [".free.x", ".free.y", ".free.x.a"]),
        ({"free": 5}, [".free"]),
        ({"free": None}, [".free"]),
        ({"raw": {"x": {"a": 1}}}, [".raw"]),
    ],
    ids=str,
)
def test_applied_fields_of_object(value, places):
    assert field_paths(applied_fields(ATOM, value)) == places


def test_applied_fields_of_untyped_object_are_deduced():
    value = {"spec": {"a": 1, "list": [{"b": 1}], "empty": {}, "null": None}}
    assert field_paths(applied_fields(atom_of_type(None), value)) == [
        ".spec",
        ".spec.a",
        ".spec.empty",
        ".spec.list",
        ".spec.null",
    ]


def test_all_fields_include_surrounding_objects_and_lists():
    value = {"one": {"a": "1"}, "names": ["x", "x"], "plain": [], "labels": {}, "free": {"x": [1]}}
    assert field_paths(all_fields(ATOM, value)) == [
        ".free",
        ".labels",
        ".names",
        ".one",
        ".plain",
        ".free.x",
        '.names[="x"]',
        ".one.a",
    ]


def test_declared_fields_with_children_are_included():
    fields = applied_fields(
        ATOM,
        {"one": {"a": "1"}, "ones": {"x": {"a": "1"}}, "containers": named("c"), "free": {"x": {"y": 1}}},
    )
    added = set(field_paths(ensure_named_fields(ATOM, fields))) - set(field_paths(fields))
    assert added == {".one", ".ones", ".containers", ".free"}


def test_declared_fields_unknown_to_type_are_included():
    fields = of_paths([("f:bogus", "f:a"), ("f:one", "f:bogus", "f:a"), ("i:0", "f:a")])
    assert field_paths(ensure_named_fields(ATOM, fields)) == [".one", ".bogus.a", ".one.bogus.a", "[0].a"]


@pytest.mark.parametrize(
    ("value", "fields", "rest"),
    [
        pytest.param({"text": "a", "number": 1}, place("f:text"), {"number": 1}, id="a member"),
        pytest.param({"text": "a"}, place("f:text"), None, id="the last one"),
        pytest.param({"text": "a"}, place("f:no"), {"text": "a"}, id="missing element"),
        pytest.param({"text": "a"}, place("i:0"), {"text": "a"}, id="path without a member"),
        pytest.param({"text": "a"}, place("f:text", "f:a"), {"text": "a"}, id="below a primitive"),
        pytest.param({"labels": {"a": "1"}}, place("f:labels", "f:a"), {"labels": None}, id="the last one of a map"),
        pytest.param({"labels": None}, place("f:labels", "f:a"), {"labels": None}, id="below null"),
        pytest.param({"whole": {"a": "1"}}, place("f:whole", "f:a"), {"whole": None}, id="part of an atomic object"),
        pytest.param({"plain": ["a"]}, place("f:plain", "i:0"), {"plain": None}, id="part of an atomic list"),
        pytest.param({"names": ["a", "b"]}, place("f:names", 'v:"a"'), {"names": ["b"]}, id="an item"),
        pytest.param({"names": ["a"]}, place("f:names", 'v:"a"'), {"names": None}, id="the last item"),
        pytest.param(
            {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
            place("f:containers", 'k:{"name":"a"}', "f:image"),
            {"containers": named("a", "b")},
            id="a member of an item",
        ),
        pytest.param({"free": {"a": 1, "b": 2}}, place("f:free", "f:a"), {"free": {"b": 2}}, id="of a free object"),
        pytest.param({"free": [1]}, place("f:free", "f:a"), {"free": None}, id="of a free list"),
        pytest.param({"free": "x"}, place("f:free", "f:a"), {"free": "x"}, id="of a free text"),
        pytest.param({"raw": {"a": 1}}, place("f:raw", "f:a"), {"raw": None}, id="part of raw"),
    ],
)  # fmt: skip
def test_remove_deletes_fields(value, fields, rest):
    before = orjson.dumps(value)
    assert remove(ATOM, value, fields) == rest
    assert orjson.dumps(value) == before
