"""Objects as stored text: the insertion of the resource version, and the order of members."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.storage import stored_object
from mockube.apiserver.storage.stored_object import (
    NotCanonical,
    StoredObject,
    UnreadableValue,
    canonical,
    canonical_custom,
    is_canonical,
    read_value,
)
from mockube.apiserver.wire.protobuf import envelope

NAMES = st.text("abcdefghij-.", min_size=1, max_size=20)
TREES = st.fixed_dictionaries(
    {
        "spec": st.dictionaries(st.text(max_size=5), st.text(max_size=10), max_size=3),
        "apiVersion": st.sampled_from(["v1", "apps/v1"]),
        "metadata": st.fixed_dictionaries(
            {"labels": st.dictionaries(NAMES, st.text('{"}\\', max_size=5)), "uid": NAMES, "name": NAMES},
            optional={
                "namespace": NAMES,
                "generateName": NAMES | st.text('"\\\x00a', max_size=5),
                "resourceVersion": st.just("5"),
            },
        ),
        "kind": st.sampled_from(["Pod", "Deployment"]),
    }
)


@given(TREES, st.integers(1, 2**62))
def test_stored_text_has_resource_version(tree, revision):
    value = canonical(tree)
    shown = orjson.loads(StoredObject(b"/k", value, revision).text)
    assert shown["metadata"].pop("resourceVersion") == str(revision)
    assert shown == tree | {"metadata": {k: v for k, v in tree["metadata"].items() if k != "resourceVersion"}}


@given(TREES)
def test_custom_text_has_fields_in_alphabetical_order(tree):
    tree = tree | {"b": {"z": 1, "a": [{"y": 1, "x": {}}]}, "a": None}
    value = canonical_custom(tree)
    assert is_canonical(value)
    found = orjson.loads(value)
    assert found == orjson.loads(canonical(tree))
    assert list(found)[3:] == ["a", "b", "spec"]
    assert b'"b":{"a":[{"x":{},"y":1}],"z":1}' in value
    assert list(found["metadata"])[-1] == "labels"
    assert list(found["spec"]) == sorted(found["spec"])


@given(TREES)
def test_list_item_is_text_without_kind(tree):
    stored = StoredObject(b"/k", canonical(tree), 7)
    whole, item = orjson.loads(stored.text), orjson.loads(stored.item.removeprefix(b","))
    assert whole == {"kind": tree["kind"], "apiVersion": tree["apiVersion"]} | item
    assert stored.labels == tree["metadata"]["labels"]


@given(TREES)
def test_parts_of_list_item_are_the_item(tree):
    parts = StoredObject(b"/k", canonical(tree), 7).item_parts()
    stored = StoredObject(b"/k", canonical(tree), 7)
    assert b"".join(parts) == stored.item
    assert stored.item_parts() == (stored.item,)


@pytest.mark.parametrize("parts_of", [StoredObject.item_parts, StoredObject.named_item_parts])
def test_items_of_large_lists_share_the_text_of_the_object(parts_of):
    stored = StoredObject(b"/k", canonical({"kind": "A", "apiVersion": "v1", "metadata": {"uid": "1"}}), 7)
    lists = [parts_of(stored) for _ in range(2)]
    assert all(parts[-1].obj is stored.value for parts in lists)


@given(TREES)
def test_named_item_is_text_after_a_comma(tree):
    stored = StoredObject(b"/k", canonical(tree), 7)
    assert b"".join(stored.named_item_parts()) == b"," + stored.text


def test_items_of_lists_are_kept_up_to_a_size(monkeypatch):
    value = canonical({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "uid": "1"}})
    objects = [StoredObject(b"/k", value, revision) for revision in range(1, 10)]
    monkeypatch.setattr(stored_object, "MAX_ITEM_BYTES", 3 * len(objects[0].item))
    for stored in objects:
        assert stored.item.startswith(b',{"metadata":')
    assert [len(stored.item_parts()) for stored in objects] == [2] * 6 + [1] * 3


def test_text_in_other_member_order_is_refused():
    with pytest.raises(NotCanonical):
        _ = StoredObject(b"/k", b'{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"1"}}', 5).text


def test_values_of_other_programs_are_read():
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"uid": "1", "name": "a"},
        "data": {"k": "v"},
    }
    ours = canonical(tree)
    assert read_value(ours) is ours
    for value in (orjson.dumps(tree), envelope.encode(tree)):
        read = read_value(value)
        assert is_canonical(read)
        assert orjson.loads(read) == tree


@pytest.mark.parametrize(
    "value", [b"", b"text", b"[]", b"{}", b'{"kind":"Pod"}', b"k8s\x00\xff", b'{"metadata":5}']
)
def test_values_that_are_no_objects_are_refused_by_key(value):
    with pytest.raises(UnreadableValue):
        read_value(value)
