"""What is sent to extenders, and what is read of their responses; the messages are upstream's."""

import pytest

from mockube.scheduler.extenders import messages
from mockube.scheduler.extenders.messages import ExtenderError, FilterResult, Victims
from mockube.scheduler.preemption import Candidate
from tests.support.controllers.scheduler_objects import info, node, pod, snapshot

POD = {"apiVersion": "v1", "kind": "Pod", **pod()}
NODES = [{"apiVersion": "v1", "kind": "Node", **node(name)} for name in "ab"]


def test_objects_are_sent_without_their_kinds():
    nodes = snapshot(NODES).nodes
    whole = messages.filter_args(info(POD), nodes, names_only=False)
    assert whole == {
        "Pod": pod(),
        "Nodes": {"metadata": {}, "items": [node("a"), node("b")]},
        "NodeNames": None,
    }
    named = messages.filter_args(info(POD), nodes, names_only=True)
    assert named == {"Pod": pod(), "Nodes": None, "NodeNames": ["a", "b"]}


def test_victims_are_sent_whole_or_by_their_uids():
    candidate = Candidate(node="a", victims=[info(pod("low"))], pdb_violations=2)
    whole = messages.preemption_args(info(POD), [candidate], names_only=False)
    victims = {"a": {"Pods": [pod("low")], "NumPDBViolations": 2}}
    assert whole == {"Pod": pod(), "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}
    named = messages.preemption_args(info(POD), [candidate], names_only=True)
    victims = {"a": {"Pods": [{"UID": "low"}], "NumPDBViolations": 2}}
    assert named == {"Pod": pod(), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}


def test_pod_to_bind_is_sent_by_its_names():
    assert messages.binding_args(info(POD), "a") == {
        "PodName": "web",
        "PodNamespace": "default",
        "PodUID": "web",
        "Node": "a",
    }


def read(function, value):
    """Return what is read of a value, or the message of its refusal."""
    try:
        return function(value)
    except ExtenderError as error:
        return str(error).removeprefix("json: cannot unmarshal ")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b' {"a": 1}', {"a": 1}),
        (b"", "EOF"),
        (b" \n", "EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b"{", "the response is no valid JSON"),
        (b"nul", "the response is no valid JSON"),
    ],
)
def test_response_is_json(body, value):
    assert read(messages.decode, body) == value


NO_RESULT = FilterResult(None, None, {}, {}, "")


@pytest.mark.parametrize(
    ("tree", "result"),
    [
        (None, NO_RESULT),
        ({}, NO_RESULT),
        ({"Nodes": None, "NodeNames": None, "FailedNodes": None, "Error": None}, NO_RESULT),
        ({"Nodes": {}}, NO_RESULT._replace(nodes=[])),
        ({"nodes": {"items": [{"metadata": {}}]}}, NO_RESULT._replace(nodes=[{"metadata": {}}])),
        ({"NodeNames": []}, NO_RESULT._replace(names=[])),
        ({"nodenames": ["a", None]}, NO_RESULT._replace(names=["a", ""])),
        ({"FailedNodes": {"a": "hot", "b": None}}, NO_RESULT._replace(failed={"a": "hot", "b": ""})),
        ({"FailedAndUnresolvableNodes": {"a": "hot"}}, NO_RESULT._replace(unresolvable={"a": "hot"})),
        ({"Error": "no"}, NO_RESULT._replace(error="no")),
        ([], "array into Go value of type v1.ExtenderFilterResult"),
        ("x", "string into Go value of type v1.ExtenderFilterResult"),
        (True, "bool into Go value of type v1.ExtenderFilterResult"),
        (1, "number into Go value of type v1.ExtenderFilterResult"),
        (1.5, "number 1.5 into Go value of type v1.ExtenderFilterResult"),
        ({"Nodes": []}, "array into Go struct field ExtenderFilterResult.Nodes of type v1.NodeList"),
        ({"Nodes": {"items": {}}}, "object into Go struct field NodeList.items of type []v1.Node"),
        ({"Nodes": {"items": ["a"]}}, "string into Go struct field NodeList.items of type v1.Node"),
        ({"NodeNames": "a"}, "string into Go struct field ExtenderFilterResult.NodeNames of type []string"),
        ({"NodeNames": [1]}, "number into Go struct field ExtenderFilterResult.NodeNames of type string"),
        (
            {"FailedNodes": ["a"]},
            "array into Go struct field ExtenderFilterResult.FailedNodes of type v1.FailedNodesMap",
        ),
        (
            {"FailedNodes": {"a": 1}},
            "number into Go struct field ExtenderFilterResult.FailedNodes of type string",
        ),
        ({"Error": 1}, "number into Go struct field ExtenderFilterResult.Error of type string"),
    ],
)
def test_filter_result_is_read_as_go_reads_it(tree, result):
    assert read(messages.filter_result, tree) == result


@pytest.mark.parametrize(
    ("tree", "result"),
    [
        (None, []),
        ([], []),
        ([{"Host": "a", "Score": 3}, {"host": "b"}], [("a", 3), ("b", 0)]),
        ({}, "object into Go value of type v1.HostPriorityList"),
        ([1], "number into Go value of type v1.HostPriority"),
        ([{"Score": True}], "bool into Go struct field HostPriority.Score of type int64"),
        ([{"Score": "1"}], "string into Go struct field HostPriority.Score of type int64"),
        ([{"Score": 1.5}], "number 1.5 into Go struct field HostPriority.Score of type int64"),
    ],
)
def test_scores_are_read_as_go_reads_them(tree, result):
    assert read(messages.scores, tree) == result


@pytest.mark.parametrize(
    ("tree", "result"),
    [
        (None, {}),
        ({"NodeNameToMetaVictims": {"a": None}}, {"a": Victims([], 0)}),
        (
            {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}},
            {"a": Victims(["u"], 1)},
        ),
        (
            {"NodeNameToMetaVictims": []},
            (
                "array into Go struct field ExtenderPreemptionResult.NodeNameToMetaVictims "
                "of type map[string]*v1.MetaVictims"
            ),
        ),
        ({"NodeNameToMetaVictims": {"a": 1}}, "number into Go value of type v1.MetaVictims"),
    ],
)
def test_victims_are_read_as_go_reads_them(tree, result):
    assert read(messages.preemption_result, tree) == result


def test_error_of_a_binding_is_read():
    assert [messages.binding_error(tree) for tree in (None, {}, {"Error": "no"})] == ["", "", "no"]
