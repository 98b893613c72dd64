import orjson
import pytest

from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.patch.apply.compare import ABSENT
from mockube.apiserver.patch.apply.merge import merge
from tests.support.server.typed import BOX

ATOM = atom_of_type(BOX)


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        pytest.param({"text": "a"}, {"number": 1}, {"text": "a", "number": 1}, id="members"),
        pytest.param({"text": "a"}, {"text": None}, {"text": None}, id="a primitive to null"),
        pytest.param({"labels": {"a": "1"}}, {"labels": None}, {"labels": {"a": "1"}}, id="null for a map"),
        pytest.param({"labels": {}}, {"labels": None}, {"labels": None}, id="null for an empty map"),
        pytest.param({"labels": None}, {"labels": {}}, {"labels": {}}, id="an empty map for null"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="a map"),
        pytest.param({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}, id="an atomic object"),
        pytest.param({"plain": ["a"]}, {"plain": ["b"]}, {"plain": ["b"]}, id="an atomic list"),
        pytest.param({"names": ["a"]}, {"names": None}, {"names": ["a"]}, id="null for a list"),
        pytest.param({"names": ["a"]}, {"names": []}, {"names": ["a"]}, id="an empty list for a list"),
        pytest.param({"names": None}, {"names": ["a"]}, {"names": ["a"]}, id="a list for null"),
        pytest.param({"names": []}, {"names": None}, {"names": None}, id="null for an empty list"),
        pytest.param({"names": ["a", "b"]}, {"names": ["c"]}, {"names": ["a", "b", "c"]}, id="a new item comes last"),
        pytest.param({"names": ["a", "b"]}, {"names": ["b", "a"]}, {"names": ["b", "a"]}, id="in the applied order"),
        pytest.param(
            {"names": ["x", "a", "y", "b", "z"]}, {"names": ["b", "n", "a"]}, {"names": ["x", "y", "b", "z", "n", "a"]},
            id="items of other managers keep their relative position",
        ),
        pytest.param(
            {"names": ["a", "x", "a", "y"]}, {"names": ["a", "n"]}, {"names": ["a", "x", "n", "y"]},
            id="an item that was there twice",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]},
            {"containers": [{"name": "a", "command": ["x"]}]},
            {"containers": [{"name": "a", "image": "1", "command": ["x"]}, {"name": "b"}]},
            id="items merge in turn",
        ),
        pytest.param(
            {"containers": [{"name": "a", "image": "1"}, {"name": "a"}]},
            {"containers": [{"name": "a", "command": ["x"]}]},
            {"containers": [{"name": "a", "command": ["x"]}]},
            id="items that are there twice do not",
        ),
        pytest.param({"free": {"a": 1}}, {"free": {"b": 2}}, {"free": {"a": 1, "b": 2}}, id="free objects"),
        pytest.param({"free": {"a": 1}}, {"free": [2]}, {"free": [2]}, id="a list for a free object"),
        pytest.param({"free": [1]}, {"free": None}, {"free": None}, id="null for a free list"),
        pytest.param({"free": [1]}, {"free": {"a": 1}}, {"free": {"a": 1}}, id="an object for a free list"),
        pytest.param({"raw": {"a": 1}}, {"raw": {"b": 2}}, {"raw": {"b": 2}}, id="raw"),
    ],
)  # fmt: skip
def test_merge_applies_configuration(live, applied, merged):
    before = orjson.dumps([live, applied])
    assert merge(ATOM, live, applied) == merged
    assert orjson.dumps([live, applied]) == before


def test_merge_without_change_returns_same_object():
    live = {
        "labels": {"a": "1"},
        "plain": ["x"],
        "names": ["a"],
        "containers": [{"name": "a", "command": ["y"]}],
        "one": {},
    }
    applied = orjson.loads(orjson.dumps(live))
    assert merge(ATOM, live, applied) is live
    assert merge(ATOM, live, applied | {"text": "x"})["containers"] is live["containers"]
    assert merge(ATOM, ABSENT, applied) is applied
