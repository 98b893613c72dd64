"""What tells nodes apart for the claims of one pod."""

import pytest

from mockube.scheduler.node_traits import (
    NO_TRAITS,
    NeedsReference,
    NodePart,
    NodeTraits,
    label_keys,
    traits_of_labels,
    traits_of_selector,
)
from mockube.scheduler.nodeinfo import NodeInfo
from tests.support.controllers.scheduler_objects import HOST, node


def at(name, **labels):
    one = NodeInfo(name)
    one.set_node(node(name, labels=labels))
    return one


NAME, LENGTH = NodePart("name", lambda one: one.name), NodePart("length", lambda one: len(one.name))


def test_nodes_with_the_same_labels_and_parts_are_alike():
    traits = NodeTraits(label_keys=frozenset({"b", "a"}), parts=(LENGTH,))
    assert traits.of(at("x", a="1", b="2")) == ("1", "2", 1)
    assert traits.of(at("yy", b="2")) == (None, "2", 2)
    assert NO_TRAITS.of(at("x")) == ()


def test_joined_traits_have_each_part_once():
    joined = NodeTraits(label_keys=frozenset("a"), parts=(NAME,)).join(
        NodeTraits(label_keys=frozenset("b"), parts=(NAME, LENGTH))
    )
    assert (joined.label_keys, joined.parts) == ({"a", "b"}, (NAME, LENGTH))
    assert joined.key == (frozenset("ab"), ("name", "length"))


@pytest.mark.parametrize("field", ["hosts", "names"])
@pytest.mark.parametrize(
    ("one", "other", "both"), [(None, None, None), ("ab", None, "ab"), (None, "ab", "ab"), ("ab", "bc", "b")]
)
def test_joined_traits_have_the_nodes_of_both(field, one, other, both):
    sides = [NodeTraits(**{field: None if each is None else frozenset(each)}) for each in (one, other)]
    expected = None if both is None else frozenset(both)
    assert getattr(sides[0].join(sides[1]), field) == expected


def of(*terms):
    return {"nodeSelectorTerms": [*terms]}


def expression(key, *values, operator="In"):
    return {"key": key, "operator": operator, "values": [*values]}


@pytest.mark.parametrize(
    ("selector", "traits"),
    [
        (None, NO_TRAITS),
        (of(), NodeTraits(hosts=frozenset())),
        (of({"matchExpressions": [expression(HOST, "a", "b")]}), NodeTraits(hosts=frozenset("ab"))),
        (of({"matchFields": [expression("metadata.name", "a")]}), NodeTraits(names=frozenset("a"))),
        (
            of({"matchExpressions": [expression("zone", "x"), expression("rack", operator="Exists")]}, {}),
            NodeTraits(label_keys=frozenset({"zone", "rack"})),
        ),
    ],
)
def test_selector_reads_hosts_names_or_labels(selector, traits):
    assert traits_of_selector(selector) == traits


@pytest.mark.parametrize(
    "selector",
    [
        of({"matchExpressions": [expression(HOST, "a", operator="NotIn")]}),
        of({"matchFields": [expression("metadata.name", "a", operator="NotIn")]}),
    ],
)
def test_selector_of_other_hosts_or_names_needs_the_reference(selector):
    with pytest.raises(NeedsReference):
        traits_of_selector(selector)


def test_hostname_is_no_label_that_groups_have():
    assert traits_of_labels(["zone"]) == NodeTraits(label_keys=frozenset({"zone"}))
    with pytest.raises(NeedsReference):
        traits_of_labels(["zone", HOST])
    with pytest.raises(NeedsReference):
        label_keys(of({"matchFields": [expression("metadata.name", "a")]}))
