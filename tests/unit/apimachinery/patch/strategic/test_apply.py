import orjson
import pytest

from mockube.apimachinery.patch import strategic
from mockube.apimachinery.patch.errors import PatchNotApplicable, UndecodablePatch, Unmergeable
from mockube.apimachinery.schema.model import SchemaType, Shape
from tests.support.server.typed import (
    FREE,
    TEXT,
    THING,
    atomic_list,
    listed_map,
    listed_set,
    mapping,
    named,
    struct,
)

NAMED = struct("Named", name=TEXT, value=TEXT, tags=listed_set(), nested=struct("Nested", a=TEXT, b=TEXT))

BOX = struct(
    "Box",
    text=TEXT,
    labels=mapping(),
    one=struct("One", a=TEXT, b=TEXT),
    whole=struct("Whole", patch_strategy=("replace",), a=TEXT, b=TEXT),
    names=listed_set(),
    items=listed_map(NAMED, "name"),
    plain=atomic_list(NAMED),
    boxes=mapping(struct("Inner", a=TEXT)),
    keyless=SchemaType(shape=Shape.LIST, element=NAMED, patch_strategy=frozenset({"merge"})),
    lists=atomic_list(atomic_list()),
    free=FREE,
)


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param({"text": "a"}, None, {"text": "a"}, id="null is no patch"),
        pytest.param({"text": "a"}, {"text": "b"}, {"text": "b"}, id="a primitive"),
        pytest.param({"text": "a"}, {"text": None, "labels": None}, {}, id="null removes"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}, id="a map"),
        pytest.param({"one": {"a": "1"}}, {"one": {"b": "2"}}, {"one": {"a": "1", "b": "2"}}, id="an object"),
        pytest.param({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}, id="replaced by type"),
        pytest.param({"plain": named("a")}, {"plain": named("b")}, {"plain": named("b")}, id="an atomic list"),
        pytest.param(
            {}, {"one": {"a": None, "b": "1"}, "items": [{"name": "a", "value": None}]},
            {"one": {"b": "1"}, "items": named("a")}, id="nulls are dropped from new values",
        ),
        pytest.param({"text": "a"}, {"text": {"$patch": "delete"}}, {}, id="directive for a primitive"),
        pytest.param({}, {"one": {"$patch": "replace", "a": "1"}}, {}, id="directive for an absent object"),
        pytest.param(
            {}, {"items": [{"name": "a", "$patch": "delete"}, *named("b")]}, {"items": named("b")},
            id="directive for an absent list item",
        ),
        pytest.param(
            {"one": {"a": "1", "b": "2"}}, {"one": {"$patch": "replace", "a": "3"}}, {"one": {"a": "3"}},
            id="$patch replace",
        ),
        pytest.param({"one": {"a": "1"}}, {"one": {"$patch": "delete"}}, {"one": {}}, id="$patch delete"),
    ],
)  # fmt: skip
def test_object_members_are_merged(original, patch, expected):
    before = orjson.dumps([original, patch])
    assert strategic.apply(original, patch, BOX) == expected
    assert orjson.dumps([original, patch]) == before


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param([], [], [], id="empty"),
        pytest.param(named("a", "b"), [], named("a", "b"), id="no changes"),
        pytest.param(named("a", "b"), named("c"), named("c", "a", "b"), id="new items come first"),
        pytest.param(
            named("a", "b"), [{"name": "b", "value": "x"}], [{"name": "a"}, {"name": "b", "value": "x"}],
            id="existing items keep their position",
        ),
        pytest.param(
            named("a", "b", "c"), named("c", "a"), named("b", "c", "a"),
            id="patched items have the order of the patch",
        ),
        pytest.param(
            [{"name": "a", "nested": {"a": "1"}, "tags": ["x"]}],
            [{"name": "a", "nested": {"b": "2"}, "tags": ["y"], "value": None}],
            [{"name": "a", "nested": {"a": "1", "b": "2"}, "tags": ["y", "x"]}],
            id="nested fields of an item are merged",
        ),
        pytest.param(named("a"), [*named("b"), {"name": "b", "value": "x"}], [{"name": "b", "value": "x"}, *named("a")],
                     id="new item twice in the patch"),
        pytest.param(
            named("a", "b"), [{"name": "a", "$patch": "delete"}, {"name": "no", "$patch": "delete"}], named("b"),
            id="$patch delete",
        ),
        pytest.param(named("a", "b"), [{"$patch": "replace"}, *named("c")], named("c"), id="$patch replace"),
        pytest.param(named("a"), [{"$patch": "replace"}], [], id="$patch replace with an empty list"),
    ],
)  # fmt: skip
def test_lists_of_objects_are_merged_by_key(original, patch, expected):
    assert strategic.apply({"items": original}, {"items": patch}, BOX) == {"items": expected}


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param(["a", "b"], {"names": ["c", "a"]}, ["c", "a", "b"], id="merge"),
        pytest.param(["a", "b"], {"$deleteFromPrimitiveList/names": ["a", "x"]}, ["b"], id="delete"),
        pytest.param(["a"], {"$deleteFromPrimitiveList/names": None}, None, id="delete all, by null"),
        pytest.param(["a"], {"$deleteFromPrimitiveList/names": "a"}, ["a"], id="$deleteFromPrimitiveList is not a list"),
        pytest.param(
            ["a", "b", "c"], {"names": ["d"], "$setElementOrder/names": ["d", "c", "a"]}, ["d", "b", "c", "a"],
            id="ordered",
        ),
        pytest.param(["a", "b"], {"$setElementOrder/names": ["b", "a"]}, ["b", "a"], id="only ordered"),
        pytest.param(None, {"names": ["b", "a"], "$setElementOrder/names": ["a", "b"]}, "refused", id="items not in the order of $setElementOrder"),
        pytest.param(
            ["a", "b", "c"],
            {"names": ["d"], "$deleteFromPrimitiveList/names": ["b"], "$setElementOrder/names": ["a", "d", "c"]},
            ["a", "d", "c"],
            id="merge, delete and order",
        ),
    ],
)  # fmt: skip
def test_lists_of_primitives_are_merged(original, patch, expected):
    before = {} if original is None else {"names": original}
    if expected == "refused":
        with pytest.raises(Unmergeable):
            strategic.apply(before, patch, BOX)
    else:
        assert strategic.apply(before, patch, BOX) == ({} if expected is None else {"names": expected})


@pytest.mark.parametrize(
    ("original", "changes", "order", "expected"),
    [
        pytest.param(named("a", "b"), None, named("b", "a"), named("b", "a"), id="only the order"),
        pytest.param(None, named("a"), named("a"), named("a"), id="a new list"),
        pytest.param(
            None, [{"name": "a", "value": None}], named("a"), [{"name": "a", "value": None}],
            id="a new list keeps its nulls",
        ),
        pytest.param(None, None, named("a"), None, id="no list"),
        pytest.param(
            named("a", "b", "c"), named("d"), named("d", "c", "a"), named("d", "b", "c", "a"),
            id="items outside $setElementOrder keep their relative position",
        ),
        pytest.param(
            named("s", "a", "b"), named("c"), named("b", "c", "a"), named("s", "b", "c", "a"), id="first of all"
        ),
        pytest.param(
            named("a", "b"), [*named("c"), {"name": "b", "$patch": "delete"}], named("a", "c"), named("a", "c"),
            id="a deletion needs no place",
        ),
        pytest.param(
            named("b", "e", "a", "c"), [*named("e", "d"), {"name": "c", "$patch": "delete"}], named("e", "c", "d"),
            named("b", "e", "a", "d"), id="new item takes the position of a deleted one",
        ),
        pytest.param(named("a", "b"), named("x", "y"), [], named("a", "b", "y", "x"), id="empty $setElementOrder"),
    ],
)  # fmt: skip
def test_set_element_order_sorts_objects(original, changes, order, expected):
    patch = {"items": changes, "$setElementOrder/items": order}
    before = {} if original is None else {"items": original}
    changed = {name: value for name, value in patch.items() if value is not None}
    assert strategic.apply(before, changed, BOX) == ({} if expected is None else {"items": expected})


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        pytest.param(
            {"a": "1", "b": "2"}, {"$retainKeys": ["a"], "a": "3"}, {"a": "3"}, id="other keys are removed"
        ),
        pytest.param({"a": "1", "b": "2"}, {"$retainKeys": ["a"]}, {"a": "1"}, id="without a change"),
        pytest.param(
            {"a": "1"}, {"$retainKeys": ["b"], "b": "2", "a": None}, {"b": "2"}, id="nulls need no mention"
        ),
    ],
)
def test_retain_keys_removes_other_keys(original, patch, expected):
    assert strategic.apply({"one": original}, {"one": patch}, BOX) == {"one": expected}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ([1], "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ({"$retainKeys": "a"}, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["a"], "text": "x"}, "invalid patch format of retainKeys"),
        ({"$setElementOrder": []}, "invalid patch format of setElementOrder list"),
        ({"$deleteFromPrimitiveListing/names": []}, "invalid patch format of primitive list"),
    ],
)
def test_malformed_strategic_patch_is_refused(patch, message):
    with pytest.raises(UndecodablePatch) as refused:
        strategic.apply({}, patch, BOX)
    assert str(refused.value) == message


def test_strategic_patch_of_untyped_object_is_refused():
    with pytest.raises(UndecodablePatch, match="strategic merge patch format is not supported"):
        strategic.apply({}, {}, None)


@pytest.mark.parametrize(
    ("original", "patch", "message"),
    [
        ({}, {"$patch": 1}, "unknown patch type: %!s(int64=1) in map: map[$patch:1]"),
        ({}, {"$patch": "zap"}, "unknown patch type: zap in map: map[$patch:zap]"),
        (
            {"items": named("a")},
            {"items": [{"name": "a", "$patch": "zap"}]},
            "unknown patch type: zap in map: map[$patch:zap name:a]",
        ),
        (
            {"items": named("a")},
            {"items": [{"$patch": "merge"}]},
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"items": named("a")},
            {"items": [{"value": "x"}]},
            "map: map[value:x] does not contain declared merge key: name",
        ),
        (
            {"items": named("a")},
            {"items": [{"$patch": "delete"}]},
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            {"items": [{"value": "x"}]},
            {"items": named("a")},
            "map: map[value:x] does not contain declared merge key: name",
        ),
        (
            {"items": named("a")},
            {"items": ["x"]},
            "list element types are not identical: [[map[name:a]] [x]]",
        ),
        ({"items": []}, {"items": ["x"]}, "expected a map[string]interface {}, but received a string"),
        (
            {"items": named("a")},
            {"items": [{"name": ["a"]}]},
            "runtime error: hash of unhashable type []interface {}",
        ),
        (
            {"keyless": named("a")},
            {"keyless": named("b")},
            "cannot merge lists without merge key for struct",
        ),
        (
            {"boxes": {"x": {"a": "1"}}},
            {"boxes": {"x": {"a": "2"}}},
            "merging an object in json but data type is not struct, instead is: map",
        ),
        (
            {"free": {"x": {}}},
            {"free": {"x": {}}},
            'unable to find api field in struct JSON for the json field "x"',
        ),
        ({}, {"$setElementOrder/no": []}, 'unable to find api field in struct Box for the json field "no"'),
        ({}, {"$setElementOrder/text": []}, "expected slice or array type, but got: struct"),
        ({}, {"$setElementOrder/lists": []}, "unexpected slice of slice"),
        ({}, {"$setElementOrder/names": "a"}, "expected a []interface {}, but received a string"),
        (
            {"names": None},
            {"$setElementOrder/names": ["a"]},
            "expected a []interface {}, but received a %!s(<nil>)",
        ),
        (
            {},
            {"names": "a", "$setElementOrder/names": ["a"]},
            "expected a []interface {}, but received a string",
        ),
        (
            {"items": []},
            {"items": [], "$setElementOrder/items": []},
            "no elements in any of the given slices",
        ),
        (
            {},
            {"items": named("b", "a"), "$setElementOrder/items": named("a", "b")},
            (
                "The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match $setElementOrder list:\n"
                "[map[name:a] map[name:b]]\n"
            ),
        ),
        (
            {},
            {"items": [*named("a"), {"$patch": "replace"}], "$setElementOrder/items": named("a")},
            (
                "The order in patch list:\n[map[name:a] map[$patch:replace]]\n doesn't match $setElementOrder list:\n"
                "[map[name:a]]\n"
            ),
        ),
    ],
)
def test_strategic_patch_that_contradicts_type_is_refused(original, patch, message):
    with pytest.raises(Unmergeable) as refused:
        strategic.apply(original, patch, BOX)
    assert str(refused.value) == message


def test_replace_directive_may_be_missing_in_element_order():
    patch = {"items": [{"$patch": "replace"}, *named("a")], "$setElementOrder/items": named("a")}
    assert strategic.apply({"items": named("z")}, patch, BOX) == {"items": named("a")}


def test_lists_of_lists_are_not_merged():
    with pytest.raises(PatchNotApplicable, match="lists of lists are not supported"):
        strategic.apply({"names": []}, {"names": [["a"]]}, BOX)


def test_untouched_parts_are_shared_with_original():
    original = {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "status": {}}
    patched = strategic.apply(original, {"spec": {"containers": [{"name": "b", "image": "x"}]}}, THING)
    assert patched["status"] is original["status"]
    assert patched["spec"]["containers"][0] is original["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("original", "patch", "left"),
    [
        ({"a": []}, {"a": {"b": None, "c": {"$patch": "delete"}, "d": 1}}, {"a": {"d": 1}}),
        ({}, {"a": {"$patch": "delete", "b": None}}, {"a": {"$patch": "delete"}}),
        ({"a": {}}, {"a": [{"$patch": "delete"}, {"c": {"$patch": "x"}}]}, {"a": [{"$patch": "delete"}, {}]}),
        ({"a": {"b": 1}}, {"a": {"b": None}}, {"a": {"b": None}}),
    ],
)
def test_as_merged_keeps_unconsumed_directives(original, patch, left):
    assert strategic.patch_after_merge(patch, original) == left
