"""The JSON patch that makes one value of another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.patch.json_difference import difference, patched

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("a/~", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
TREES = st.dictionaries(st.text("ab/~", max_size=3), VALUES, max_size=4)


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": 1}, {"b": 1}, [{"op": "remove", "path": "/a"}, {"op": "add", "path": "/b", "value": 1}]),
        ({"a": {"b/~": 1}}, {"a": {"b/~": 2}}, [{"op": "replace", "path": "/a/b~1~0", "value": 2}]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [{"op": "replace", "path": "/a/1", "value": 3}]),
        ({"a": [1, 2]}, {"a": [1]}, [{"op": "replace", "path": "/a", "value": [1]}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
    ],
)
def test_difference_is_a_patch(before, after, patch):
    assert difference(before, after) == patch


@given(TREES, TREES)
def test_patch_makes_one_value_of_the_other(before, after):
    assert patched(before, difference(before, after)) == after


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        ([{"op": "add", "path": "/a~1b/x~0y", "value": 1}], {"a/b": {"x~y": 1}, "l": [1, 2]}),
        ([{"op": "replace", "path": "/l/1", "value": 5}], {"a/b": {}, "l": [1, 5]}),
        ([{"op": "remove", "path": "/l"}], {"a/b": {}}),
        ([{"op": "remove", "path": ""}], None),
        ([], {"a/b": {}, "l": [1, 2]}),
    ],
)
def test_operations_change_a_copy(patch, result):
    before = {"a/b": {}, "l": [1, 2]}
    assert patched(before, patch) == result
    assert before == {"a/b": {}, "l": [1, 2]}
