import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.patch import json_merge
from mockube.apimachinery.patch.errors import UndecodablePatch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param({"a": 1}, {}, {"a": 1}, id="empty"),
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="a new member"),
        pytest.param({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": 2}, id="null removes"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="objects merge"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": {"b": 1}}, {"a": 5}, {"a": 5}, id="an object becomes a number"),
        pytest.param({"a": None}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null becomes an object"),
        pytest.param({}, {"a": {"b": None}}, {"a": {}}, id="nulls are dropped from new values"),
        pytest.param(
            {"a": 1}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="even in lists, but not the elements"
        ),
        pytest.param(
            {"a": {}},
            {"a": [{"b": None}]},
            {"a": [{"b": None}]},
            id="nulls are kept in a value that replaces an object",
        ),
    ],
)
def test_merge_patch_is_applied(document, patch, expected):
    before = orjson.dumps([document, patch])
    assert json_merge.apply(document, patch) == expected
    assert orjson.dumps([document, patch]) == before


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        (
            [1],
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "x",
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
    ],
)
def test_malformed_merge_patch_is_refused(patch, message):
    with pytest.raises(UndecodablePatch) as refused:
        json_merge.apply({}, patch)
    assert str(refused.value) == message


def test_merge_patch_sorts_only_containers_on_its_path():
    document = {"b": {"z": 1, "a": 2}, "a": {"z": 1, "a": 2}}
    patched = json_merge.apply(document, {"a": {"b": {"y": 1, "x": [{"q": 1, "p": 2}]}}})
    assert orjson.dumps(patched) == b'{"a":{"a":2,"b":{"x":[{"p":2,"q":1}],"y":1},"z":1},"b":{"z":1,"a":2}}'
    assert patched["b"] is document["b"]


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        pytest.param({"a": 1}, {"a": 1}, {}, id="the same"),
        pytest.param({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": None, "b": 3, "c": 4}, id="members"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}, id="nested"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 1}}, {}, id="nested, the same"),
        pytest.param({"a": 1}, {"a": True}, {"a": True}, id="1 is not true"),
        pytest.param({"a": 1}, {"a": 1.0}, {"a": 1.0}, id="1 is not 1.0"),
        pytest.param(
            {"a": [{"b": 1}]}, {"a": [{"b": True}]}, {"a": [{"b": True}]}, id="not in a list either"
        ),
        pytest.param({"a": [1, 2]}, {"a": [1]}, {"a": [1]}, id="a shorter list"),
        pytest.param({"a": [{"b": 1}]}, {"a": [{"c": 1}]}, {"a": [{"c": 1}]}, id="other members in a list"),
        pytest.param({}, {"a": {}}, {"a": {}}, id="an empty object"),
    ],
)
def test_diff_creates_merge_patch(before, after, patch):
    assert orjson.dumps(json_merge.diff(before, after)) == orjson.dumps(patch)


SCALARS = st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2) | st.floats(-2, 2)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def canonical(tree):
    return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)


@given(before=DOCUMENTS, after=DOCUMENTS)
def test_diff_applied_to_first_gives_second(before, after):
    patch = json_merge.diff(before, after)
    assert canonical(json_merge.apply(before, patch)) == canonical(after)
    assert json_merge.diff(after, after) == {}


@given(document=DOCUMENTS, patch=DOCUMENTS)
def test_second_merge_patch_changes_nothing(document, patch):
    once = json_merge.apply(document, patch)
    assert canonical(json_merge.apply(once, patch)) == canonical(once)
