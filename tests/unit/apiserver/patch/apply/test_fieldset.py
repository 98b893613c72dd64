import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.patch.apply import fieldset, fieldsv1
from mockube.apiserver.patch.apply.elements import MalformedFields
from mockube.apiserver.patch.apply.fieldset import (
    EMPTY,
    difference,
    format_path,
    has_path,
    intersection,
    of_fields,
    of_paths,
    paths,
    recursive_difference,
    union,
)

STEPS = ["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "i:0"]
PATHS = st.lists(st.sampled_from(STEPS), min_size=1, max_size=3).map(tuple)
SETS = st.frozensets(PATHS, max_size=8)


def path_set(fields):
    return frozenset(paths(fields))


@given(one=SETS)
def test_field_set_contains_its_paths(one):
    fields = of_paths(one)
    assert path_set(fields) == one
    assert all(has_path(fields, path) for path in one)
    assert not has_path(fields, ("f:no",))
    assert not has_path(fields, ())


@given(one=SETS, other=SETS)
def test_field_set_operations_match_set_operations(one, other):
    a, b = of_paths(one), of_paths(other)
    assert path_set(union(a, b)) == one | other
    assert path_set(intersection(a, b)) == one & other
    assert path_set(difference(a, b)) == one - other
    assert (path_set(a), path_set(b)) == (one, other)


@given(one=SETS, other=SETS)
def test_recursive_difference_removes_descendants(one, other):
    below = {path for path in one if any(path[: len(top)] == top for top in other)}
    assert path_set(recursive_difference(of_paths(one), of_paths(other))) == one - below


@given(one=SETS, other=SETS)
def test_operation_without_effect_returns_same_object(one, other):
    a, b = of_paths(one | other), of_paths(other)
    assert union(a, b) is a
    assert union(a, EMPTY) is a
    assert difference(a, difference(b, a)) is a
    assert recursive_difference(a, EMPTY) is a
    assert intersection(a, a) is a


@given(one=SETS, other=SETS)
def test_field_set_has_no_empty_branches(one, other):
    def no_empty_branch(node):
        return all(
            step == fieldset.SELF or (below and no_empty_branch(below)) for step, below in node.items()
        )

    a, b = of_paths(one), of_paths(other)
    for operation in (union, intersection, difference, recursive_difference):
        assert no_empty_branch(operation(a, b))


@given(one=SETS)
def test_fields_v1_round_trip_keeps_set(one):
    fields = of_paths(one)
    assert path_set(fieldsv1.decode(fieldsv1.encode(fields)).fields) == one


def test_paths_are_sorted_with_parents_before_descendants():
    fields = of_paths([("f:b",), ("f:a", "f:x"), ('k:{"n":10}',), ('k:{"n":9}',), ("f:b", "f:y"), ("v:1",)])
    assert [format_path(path) for path in paths(fields)] == [".b", "[n=9]", "[n=10]", "[=1]", ".a.x", ".b.y"]


def test_of_fields_makes_set_from_names():
    assert path_set(of_fields("metadata.name", "kind")) == {("f:metadata", "f:name"), ("f:kind",)}


@pytest.mark.parametrize(
    ("tree", "paths_in_it", "written"),
    [
        pytest.param({}, [], {}, id="empty"),
        pytest.param({".": {}}, [], {}, id="root member is dropped"),
        pytest.param({"f:a": {}}, [("f:a",)], {"f:a": {}}, id="a place"),
        pytest.param({"f:a": None}, [("f:a",)], {"f:a": {}}, id="null"),
        pytest.param({"f:a": {"f:b": {}}}, [("f:a", "f:b")], {"f:a": {"f:b": {}}}, id="a place below"),
        pytest.param(
            {"f:a": {"f:b": {}, ".": {}}}, [("f:a",), ("f:a", "f:b")], {"f:a": {".": {}, "f:b": {}}},
            id="a place and one below",
        ),
        pytest.param({"f:a": {".": {}}}, [("f:a",)], {"f:a": {}}, id="redundant dot of a leaf"),
        pytest.param({"f:a": {"x:b": {}}}, [("f:a",)], {"f:a": {}}, id="parent of an unknown prefix"),
        pytest.param({"x:b": {}}, [], {}, id="unknown prefix"),
        pytest.param(
            {"v:10": {}, "v:9": {}, 'k:{"b":1, "a":2}': {}, "f:z": {}, "f:a": {}},
            [("f:a",), ("f:z",), ('k:{"a":2,"b":1}',), ("v:9",), ("v:10",)],
            {"f:a": {}, "f:z": {}, 'k:{"a":2,"b":1}': {}, "v:9": {}, "v:10": {}},
            id="in disorder",
        ),
    ],
)  # fmt: skip
def test_fields_v1_is_encoded_and_decoded(tree, paths_in_it, written):
    fields = fieldsv1.decode(tree).fields
    assert list(paths(fields)) == paths_in_it
    assert list(fieldsv1.encode(fields).items()) == list(written.items())


@pytest.mark.parametrize("tree", [{"f:a": 0}, {"f:a": {"f:b": 1}}, {"a": {}}, [], "x"])
def test_malformed_fields_v1_is_refused(tree):
    with pytest.raises(MalformedFields):
        fieldsv1.decode(tree)


def test_fields_v1_of_same_text_is_decoded_once():
    assert fieldsv1.decode({"f:a": {}}).fields is fieldsv1.decode({"f:a": {}}).fields
