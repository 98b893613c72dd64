from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.client.cache.store import Store
from mockube.client.resources import Key

A, B = Key("x", "a"), Key("y", "b")


def letters(view):
    return view


def place_of(view):
    """Count texts by their first letter and their length, but not those that begin with r."""
    if view.startswith("r"):
        return None
    return view[0], len(view)  # raises for an empty text


@pytest.fixture
def store():
    store = Store()
    store.add_index("letter", letters)
    return store


def test_stored_object_is_found_by_key_namespace_and_index(store):
    store.put(A, "pq")
    assert store.get("x", "a") == "pq"
    assert (store.all(), store.in_namespace("x"), store.by_index("letter", "q")) == (["pq"], ["pq"], ["pq"])


def test_changed_object_is_found_by_new_index_values_only(store):
    assert store.put(A, "pq") is None
    assert store.put(A, "qr") == "pq"
    assert [store.by_index("letter", value) for value in "pqr"] == [[], ["qr"], ["qr"]]


def test_removed_object_is_not_found(store):
    store.put(A, "p")
    assert store.remove(A) == "p"
    assert store.remove(A) is None
    assert (store.get("x", "a"), store.in_namespace("x"), store.by_index("letter", "p")) == (None, [], [])


def test_late_index_covers_existing_objects(store):
    store.put(A, "p")
    store.add_index("length", lambda view: [str(len(view))])
    assert store.by_index("length", "1") == ["p"]


def test_index_counts_objects_by_value(store):
    store.put(A, "pq")
    store.put(B, "q")
    assert store.index_counts("letter") == {"p": 1, "q": 2}
    store.remove(A)
    assert store.index_counts("letter") == {"q": 1}


def test_unknown_index_raises_key_error(store):
    with pytest.raises(KeyError):
        store.by_index("colour", "red")


def test_returned_lists_are_copies(store):
    store.put(A, "p")
    store.in_namespace("x").clear()
    assert store.in_namespace("x") == ["p"]


@settings(max_examples=60)
@given(
    steps=st.lists(
        st.tuples(
            st.tuples(st.sampled_from("xy"), st.sampled_from("ab")), st.none() | st.text("pqr", max_size=3)
        ),
        max_size=30,
    )
)
def test_every_lookup_agrees_with_full_scan(steps):
    store, model = Store(), {}
    store.add_index("letter", letters)
    store.add_tally("lengths", place_of)
    for (namespace, name), view in steps:
        key = Key(namespace, name)
        if view is None:
            assert store.remove(key) == model.pop(key, None)
        else:
            assert store.put(key, view) == model.get(key)
            model[key] = view
    assert sorted(store.all()) == sorted(model.values())
    assert set(store) == set(model)
    assert len(store) == len(model)
    for namespace in "xy":
        expected = [view for key, view in model.items() if key.namespace == namespace]
        assert sorted(store.in_namespace(namespace)) == sorted(expected)
    for letter in "pqr":
        expected = [view for view in model.values() if letter in view]
        assert sorted(store.by_index("letter", letter)) == sorted(expected)
    for letter in "pqr":
        counted = [place_of(view) for view in model.values() if view]
        assert store.class_counts("lengths", letter) == Counter(
            place[1] for place in counted if place is not None and place[0] == letter
        )


def test_late_tally_counts_existing_objects_and_skips_those_that_fail():
    failures = []
    store = Store(lambda key, *_: failures.append(key))
    store.put(A, "pq")
    store.put(B, "")
    store.add_tally("lengths", place_of)
    assert (store.class_counts("lengths", "p"), failures) == ({2: 1}, [B])
