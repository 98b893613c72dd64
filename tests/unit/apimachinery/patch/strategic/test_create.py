import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.patch import strategic
from mockube.apimachinery.patch.errors import Unmergeable
from mockube.apimachinery.schema.model import SchemaType, Shape
from tests.support.server.created_patches import create_two_way
from tests.support.server.typed import TEXT, atomic_list, listed_map, listed_set, mapping, named, struct

ITEM = struct("Item", name=TEXT, value=TEXT, tags=listed_set())
VOLUMES_TYPE = SchemaType(
    shape=Shape.LIST,
    element=struct("Volume", name=TEXT, a=TEXT, b=TEXT),
    merge_key="name",
    patch_strategy=frozenset({"merge", "retainKeys"}),
)

BOX = struct(
    "Box",
    text=TEXT,
    labels=mapping(),
    one=struct("One", a=TEXT, b=TEXT),
    whole=struct("Whole", patch_strategy=("replace",), a=TEXT, b=TEXT),
    kept=struct("Kept", patch_strategy=("retainKeys",), a=TEXT, b=TEXT),
    names=listed_set(),
    items=listed_map(ITEM, "name"),
    volumes=VOLUMES_TYPE,
    plain=atomic_list(ITEM),
)


@pytest.mark.parametrize(
    ("original", "modified", "patch"),
    [
        pytest.param({"text": "a"}, {"text": "a"}, {}, id="the same"),
        pytest.param({"text": "a"}, {"text": "b"}, {"text": "b"}, id="a primitive"),
        pytest.param({"text": "a"}, {}, {"text": None}, id="removed members"),
        pytest.param({}, {"one": {"a": "1"}}, {"one": {"a": "1"}}, id="added members"),
        pytest.param({"one": {"a": "1"}}, {"one": "x"}, {"one": "x"}, id="another type"),
        pytest.param({"one": {"a": "1"}}, {"one": {"b": "2"}}, {"one": {"a": None, "b": "2"}}, id="an object"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {}}, {"labels": {"a": None}}, id="a map"),
        pytest.param({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}, id="replaced by type"),
        pytest.param({"plain": named("a")}, {"plain": named("b")}, {"plain": named("b")}, id="an atomic list"),
        pytest.param(
            {"kept": {"a": "1"}}, {"kept": {"b": "2"}}, {"kept": {"a": None, "b": "2", "$retainKeys": ["b"]}},
            id="retained keys",
        ),
        pytest.param({"kept": {"a": "1"}}, {"kept": {}}, {"kept": {"a": None}}, id="no key to retain"),
        pytest.param({"names": []}, {"names": ["a"]}, {"names": ["a"]}, id="a list that was empty"),
        pytest.param(
            {"names": ["b", "a", "c"]}, {"names": ["d", "c"]},
            {
                "names": ["d"],
                "$deleteFromPrimitiveList/names": ["a", "b"],
                "$setElementOrder/names": ["d", "c"],
            },
            id="primitives",
        ),
        pytest.param(
            {"names": ["a"]}, {"names": []}, {"$deleteFromPrimitiveList/names": ["a"]}, id="no primitives any more"
        ),
        pytest.param(
            {"items": named("a", "b")}, {"items": [{"name": "c"}, {"name": "b", "value": "x"}]},
            {
                "items": [{"name": "c"}, {"value": "x", "name": "b"}, {"name": "a", "$patch": "delete"}],
                "$setElementOrder/items": named("c", "b"),
            },
            id="objects",
        ),
        pytest.param(
            {"items": named("a", "b")}, {"items": named("b", "a")}, {"$setElementOrder/items": named("b", "a")},
            id="another order",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "a": "1"}]}, {"volumes": [{"name": "v", "b": "2"}]},
            {
                "volumes": [{"a": None, "b": "2", "$retainKeys": ["b", "name"], "name": "v"}],
                "$setElementOrder/volumes": named("v"),
            },
            id="retained keys in a list",
        ),
    ],
)  # fmt: skip
def test_two_way_patch_is_created(original, modified, patch):
    before = orjson.dumps([original, modified])
    assert create_two_way(original, modified, BOX) == patch
    assert orjson.dumps([original, modified]) == before


@pytest.mark.parametrize(
    ("original", "modified", "message"),
    [
        ({"no": {}}, {"no": {"a": 1}}, 'unable to find api field in struct Box for the json field "no"'),
        (
            {"items": [{"value": "x"}]},
            {"items": named("a")},
            "map: map[value:x] does not contain declared merge key: name",
        ),
    ],
)
def test_two_way_patch_of_wrong_type_is_refused(original, modified, message):
    with pytest.raises(Unmergeable) as refused:
        create_two_way(original, modified, BOX)
    assert str(refused.value) == message


WORDS = st.sampled_from("abcd")
NAMES = st.lists(WORDS, unique=True, max_size=4)
ITEMS = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"value": WORDS, "tags": NAMES}),
    unique_by=lambda item: item["name"],
    max_size=4,
)
VOLUMES = st.lists(
    st.fixed_dictionaries({"name": WORDS}, optional={"a": WORDS, "b": WORDS}),
    unique_by=lambda item: item["name"],
    max_size=3,
)
PAIR = st.fixed_dictionaries({}, optional={"a": WORDS, "b": WORDS})
BOXES = st.fixed_dictionaries(
    {},
    optional={
        "text": WORDS,
        "labels": st.dictionaries(WORDS, WORDS, max_size=3),
        "one": PAIR,
        "whole": PAIR,
        "kept": PAIR,
        "names": NAMES,
        "items": ITEMS,
        "volumes": VOLUMES,
        "plain": ITEMS,
    },
)


@given(original=BOXES, modified=BOXES)
def test_created_patch_applied_to_original_gives_modified(original, modified):
    patch = create_two_way(original, modified, BOX)
    assert strategic.apply(original, patch, BOX) == modified
    assert create_two_way(modified, modified, BOX) == {}


def without_empty_lists(box):
    """Remove empty lists, as in stored objects: upstream cannot order items of an empty list."""
    return {name: value for name, value in box.items() if value != []}


@given(original=BOXES, modified=BOXES, live=BOXES.map(without_empty_lists))
def test_created_patch_keeps_requested_order_among_other_items(original, modified, live):
    patch = create_two_way(original, modified, BOX)
    wanted = [entry["name"] for entry in patch.get("$setElementOrder/items", [])]
    patched = [entry["name"] for entry in strategic.apply(live, patch, BOX).get("items", [])]
    assert [name for name in patched if name in wanted] == [name for name in wanted if name in patched]
