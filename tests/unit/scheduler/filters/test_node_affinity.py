"""Nodes that a pod neither names nor selects."""

from functools import partial

import pytest

from mockube.scheduler.filters.filter import Rejection, Restriction
from mockube.scheduler.filters.node_affinity import node_affinity, node_name
from tests.support.controllers.scheduler_objects import info, node, pod, rejections, snapshot


def rejection(*reasons, is_unresolvable=True):
    return Rejection(reasons, is_unresolvable=is_unresolvable)


def in_names(*names, operator="In", key="metadata.name"):
    return {"matchFields": [{"key": key, "operator": operator, "values": [*names]}]}


def has_label(key, *values):
    return {"matchExpressions": [{"key": key, "operator": "In", "values": [*values]}]}


def required(*terms):
    selector = {"nodeSelectorTerms": [*terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


MISMATCH = rejection("node(s) didn't match Pod's node affinity/selector")


CONFLICT = rejection("pod affinity terms conflict")


@pytest.mark.parametrize(
    ("spec", "rejected"),
    [
        pytest.param({}, [], id="nothing required"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, ["b"], id="selector"),
        pytest.param(
            {"nodeSelector": {"disk": "ssd", "os": "linux"}}, ["a", "b"], id="selector of two labels"
        ),
        pytest.param(required(has_label("disk", "hdd", "ssd")), ["b"], id="affinity"),
        pytest.param(
            required(has_label("disk", "hdd"), has_label("disk", "ssd")), ["b"], id="one of two terms"
        ),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}, **required(in_names("b"))},
            ["a", "b"],
            id="selector and affinity",
        ),
        pytest.param(required(in_names("a", operator="NotIn")), ["a"], id="other names"),
    ],
)
def test_node_that_affinity_does_not_select_is_rejected(spec, rejected):
    state = snapshot([node(labels={"disk": "ssd"}), node("b")])
    assert rejections(node_affinity, pod(**spec), state) == dict.fromkeys(rejected, MISMATCH)


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param([in_names("a", "b")], {"a", "b"}, id="names of a term"),
        pytest.param([in_names("a"), in_names("b")], {"a", "b"}, id="names of all terms"),
        pytest.param(
            [{"matchFields": in_names("a", "b")["matchFields"] + in_names("b", "c")["matchFields"]}],
            {"b"},
            id="names in both requirements",
        ),
        pytest.param([in_names("a") | has_label("disk", "ssd")], {"a"}, id="names and labels"),
        pytest.param([in_names("a"), has_label("disk", "ssd")], None, id="a term without names"),
        pytest.param([in_names("a", operator="NotIn")], None, id="names to avoid"),
    ],
)
def test_affinity_restricts_the_nodes_that_are_considered(terms, names):
    found = node_affinity(info(pod(**required(*terms))), snapshot([node()]))
    assert (found.names if isinstance(found, Restriction) else None) == names


def test_affinity_to_names_that_exclude_each_other_rejects_all_nodes():
    conflict = {"matchFields": in_names("a")["matchFields"] + in_names("b")["matchFields"]}
    assert rejections(node_affinity, pod(**required(conflict)), snapshot([node()])) == {"*": CONFLICT}


def test_affinity_that_is_added_to_all_pods_is_checked_first():
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
    check = partial(node_affinity, added={"nodeSelectorTerms": terms})
    state = snapshot(
        [node("a", labels={"disk": "ssd"}), node("b"), node("c", labels={"disk": "ssd", "rack": "1"})]
    )
    found = rejections(check, pod(nodeSelector={"rack": "1"}), state)
    assert {name: rejection.reasons[0] for name, rejection in found.items()} == {
        "a": "node(s) didn't match Pod's node affinity/selector",
        "b": "node(s) didn't match scheduler-enforced node affinity",
    }
    assert sorted(rejections(check, pod(), state)) == ["b"]


def test_pod_with_node_name_fits_only_that_node():
    state = snapshot([node(), node("b")])
    other = rejection("node(s) didn't match the requested node name")
    assert rejections(node_name, pod(nodeName="b"), state) == {"a": other}
    assert rejections(node_name, pod(), state) == {}
