import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.controller_manager.cache.store import Store
from mockube.controller_manager.client.resources import Key

A, B = Key("x", "a"), Key("y", "b")


def letters(view):
    return view


@pytest.fixture
def store():
    store = Store()
    store.add_index("letter", letters)
    return store


def test_what_was_put_is_found(store):
    store.put(A, "pq")
    assert store.get("x", "a") == "pq"
    assert (store.all(), store.in_namespace("x"), store.by_index("letter", "q")) == (["pq"], ["pq"], ["pq"])


def test_what_changes_is_found_by_its_new_values_alone(store):
    assert store.put(A, "pq") is None
    assert store.put(A, "qr") == "pq"
    assert [store.by_index("letter", value) for value in "pqr"] == [[], ["qr"], ["qr"]]


def test_what_was_removed_is_not_found(store):
    store.put(A, "p")
    assert store.remove(A) == "p"
    assert store.remove(A) is None
    assert (store.get("x", "a"), store.in_namespace("x"), store.by_index("letter", "p")) == (None, [], [])


def test_an_index_that_comes_later_finds_what_is_there(store):
    store.put(A, "p")
    store.add_index("length", lambda view: [str(len(view))])
    assert store.by_index("length", "1") == ["p"]


def test_an_index_that_nobody_added_is_an_error(store):
    with pytest.raises(KeyError):
        store.by_index("colour", "red")


def test_what_is_found_is_ones_own(store):
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
def test_every_way_to_find_agrees_with_looking_at_all(steps):
    store, model = Store(), {}
    store.add_index("letter", letters)
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
