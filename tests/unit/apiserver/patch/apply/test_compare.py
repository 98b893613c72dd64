import pytest

from mockube.apiserver.patch.apply.atoms import TypedError, atom_of_type
from mockube.apiserver.patch.apply.compare import compare, equal
from mockube.apiserver.patch.apply.fieldset import EMPTY
from tests.support.server.fields import field_paths, place
from tests.support.server.typed import BOX, named

ATOM = atom_of_type(BOX)


@pytest.mark.parametrize(
    ("before", "after", "removed", "modified", "added"),
    [
        pytest.param({}, {}, [], [], [], id="empty"),
        pytest.param({"text": "a"}, {"text": "b"}, [], [".text"], [], id="modified"),
        pytest.param({"text": "a"}, {}, [".text"], [], [], id="removed"),
        pytest.param({}, {"text": "a"}, [], [], [".text"], id="added"),
        pytest.param({"text": "a"}, {"text": None}, [], [".text"], [], id="to null"),
        pytest.param({"number": 1}, {"number": 1.0}, [], [], [], id="the same number"),
        pytest.param({"free": 1}, {"free": True}, [], [".free"], [], id="true is no number"),
        pytest.param({"free": [1]}, {"free": [1.0]}, [], [], [], id="the same number in a list"),
        pytest.param({}, {"one": {"a": "1"}}, [], [], [".one", ".one.a"], id="an object added"),
        pytest.param({"one": {}}, {"one": {"a": "1"}}, [], [], [".one.a"], id="a member added"),
        pytest.param({"one": None}, {"one": {"a": "1"}}, [], [], [".one.a"], id="a member added to null"),
        pytest.param({"one": None}, {"one": {}}, [], [".one"], [], id="null to empty"),
        pytest.param({"one": {"a": "1"}}, {}, [".one", ".one.a"], [], [], id="an object removed"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"b": "1"}}, [".labels.a"], [], [".labels.b"], id="a map"),
        pytest.param({"whole": {"a": "1"}}, {"whole": {"a": "2"}}, [], [".whole"], [], id="an atomic object"),
        pytest.param({"plain": ["a"]}, {"plain": ["b"]}, [], [".plain"], [], id="an atomic list"),
        pytest.param({"names": None}, {"names": []}, [], [".names"], [], id="null to an empty list"),
        pytest.param({"names": None}, {"names": ["a"]}, [], [], ['.names[="a"]'], id="null to a list"),
        pytest.param({"names": ["a", "b"]}, {"names": ["b", "a"]}, [], [], [], id="another order"),
        pytest.param({"names": ["a"]}, {"names": ["b"]}, ['.names[="a"]'], [], ['.names[="b"]'], id="a set"),
        pytest.param(
            {"ports": [{"port": 80, "name": "x"}]}, {"ports": [{"port": 80, "protocol": "TCP", "name": "y"}]},
            [], ['.ports[port=80,protocol="TCP"].name'], ['.ports[port=80,protocol="TCP"].protocol'], id="a default key",
        ),
        pytest.param({"names": ["a", "a"]}, {"names": ["a", "a", "a"]}, [], ['.names[="a"]'], [], id="more of the same"),
        pytest.param({"names": ["a", "a"]}, {"names": ["a", "a"], "text": "b"}, [], [], [".text"], id="twice, as before"),
        pytest.param({"names": ["a"]}, {"names": ["a", "a"]}, ['.names[="a"]'], [], ['.names[="a"]'], id="now twice"),
        pytest.param({"names": ["a", "a"]}, {"names": ["a"]}, ['.names[="a"]'], [], ['.names[="a"]'], id="once again"),
        pytest.param({"names": ["a", "a"]}, {"names": ["b"]}, ['.names[="a"]'], [], ['.names[="b"]'], id="twice, then not"),
        pytest.param({"names": ["b"]}, {"names": ["a", "a"]}, ['.names[="b"]'], [], ['.names[="a"]'], id="not, then twice"),
        pytest.param({"free": {"a": 1}}, {"free": {"a": 2}}, [], [".free.a"], [], id="free, a member"),
        pytest.param({"free": {"a": 1}}, {"free": [1]}, [".free.a"], [".free"], [], id="free, an object to a list"),
        pytest.param({"free": "x"}, {"free": {"a": 1}}, [], [".free"], [".free.a"], id="free, a text to an object"),
        pytest.param({"free": "x"}, {"free": {}}, [], [".free"], [], id="free, a text to an empty object"),
        pytest.param({"raw": {"a": 1}}, {"raw": {"a": 2}}, [], [".raw"], [], id="raw"),
    ],
)  # fmt: skip
def test_comparison_finds_removed_modified_and_added_fields(before, after, removed, modified, added):
    assert [field_paths(fields) for fields in compare(ATOM, before, after)] == [removed, modified, added]


def test_ignored_fields_are_not_compared():
    changes = compare(ATOM, {"text": "a", "one": {"a": "1"}}, {"text": "b", "one": {"b": "1"}})
    assert [field_paths(fields) for fields in changes.exclude(place("f:one"))] == [[], [".text"], []]
    assert changes.exclude(EMPTY) is changes


def test_items_without_keys_are_not_comparable():
    with pytest.raises(
        TypedError, match="element 1: associative list with keys has an element that omits all"
    ):
        compare(ATOM, {"containers": [{"name": "a"}, {}]}, {"containers": named("a")})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        ("1", 1, False),
        ({"a": [1]}, {"a": [1.0]}, True),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 1], False),
        ([], {}, False),
        (None, False, False),
    ],
)
def test_equal_values_have_no_difference(one, other, expected):
    assert equal(one, other) is expected
