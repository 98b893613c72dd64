"""Nodes that are rejected by their own state."""

from functools import partial
from types import SimpleNamespace

import pytest

from mockube.scheduler.config.args import NodeResourcesFitArgs
from mockube.scheduler.filters.filter import Rejection, Restriction
from mockube.scheduler.filters.taints_node_affinity_resources import (
    node_affinity,
    node_name,
    node_ports,
    node_unschedulable,
    resources_fit,
    taint_toleration,
)
from tests.support.controllers.scheduler_objects import info, node, pod, rejections, snapshot

GPU = "example.com/gpu"


def rejection(*reasons, is_unresolvable=True):
    return Rejection(reasons, is_unresolvable=is_unresolvable)


@pytest.mark.parametrize(
    ("requests", "running", "expected"),
    [
        pytest.param({"cpu": "3"}, {"cpu": "1"}, None, id="all of it"),
        pytest.param({"cpu": "3001m"}, {"cpu": "1"}, (False, "Insufficient cpu"), id="a millicore less"),
        pytest.param({"cpu": "4"}, {"cpu": "1"}, (False, "Insufficient cpu"), id="preemption helps"),
        pytest.param({"cpu": "4001m"}, {}, (True, "Insufficient cpu"), id="larger than the node"),
        pytest.param({"cpu": "0"}, {"cpu": "5"}, None, id="no request on a full node"),
        pytest.param({GPU: "1"}, {}, (True, f"Insufficient {GPU}"), id="a resource that the node lacks"),
        pytest.param({GPU: "0"}, {}, None, id="none of a resource that the node lacks"),
        pytest.param(
            {"cpu": "4", "memory": "9Gi"},
            {"cpu": "1"},
            (True, "Insufficient cpu", "Insufficient memory"),
            id="one of two larger than the node",
        ),
    ],
)
def test_node_without_requested_resources_is_rejected(requests, running, expected):
    state = snapshot([node()], [pod("old", requests=running, nodeName="a")])
    found = rejections(resources_fit, pod(requests=requests), state)
    assert found == ({} if expected is None else {"a": rejection(*expected[1:], is_unresolvable=expected[0])})


@pytest.mark.parametrize(("pods", "is_full"), [("2", False), ("1", True)])
def test_node_with_maximum_of_pods_is_rejected(pods, is_full):
    state = snapshot([node(pods=pods)], [pod("old", nodeName="a")])
    full = {"a": rejection("Too many pods", is_unresolvable=False)}
    assert rejections(resources_fit, pod(), state) == (full if is_full else {})


@pytest.mark.parametrize(("minor", "is_unresolvable"), [("1.34", True), ("1.33", False)])
def test_preemption_is_tried_for_any_lack_of_resources_before_1_34(minor, is_unresolvable):
    found = rejections(resources_fit, pod(requests={"cpu": "5"}), snapshot([node()], minor=minor))
    assert found["a"].is_unresolvable is is_unresolvable


def test_devices_provide_resource_on_nodes_that_do_not_have_it():
    nodes = [node(), node("b", status={"allocatable": {"pods": "9", GPU: "1"}})]
    state = snapshot(nodes, devices=SimpleNamespace(extended_classes={GPU: "class"}))
    assert [*rejections(resources_fit, pod(requests={GPU: "2"}), state)] == ["b"]


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


UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


@pytest.mark.parametrize(("tolerations", "rejected"), [([], ["b"]), ([UNSCHEDULABLE], [])])
def test_unschedulable_node_is_rejected_unless_its_taint_is_tolerated(tolerations, rejected):
    state = snapshot([node(), node("b", unschedulable=True)])
    found = rejections(node_unschedulable, pod(tolerations=tolerations), state)
    assert found == dict.fromkeys(rejected, rejection("node(s) were unschedulable"))


def test_pod_with_node_name_fits_only_that_node():
    state = snapshot([node(), node("b")])
    other = rejection("node(s) didn't match the requested node name")
    assert rejections(node_name, pod(nodeName="b"), state) == {"a": other}
    assert rejections(node_name, pod(), state) == {}


def with_port(name, port, *, ip=None, protocol="TCP", **fields):
    host_port = {"hostPort": port, "protocol": protocol, **({"hostIP": ip} if ip else {})}
    return pod(name, **{"containers": [{"name": "c", "ports": [host_port]}], **fields})


@pytest.mark.parametrize(
    ("wanted", "is_free"),
    [
        pytest.param({"port": 80}, False, id="same port"),
        pytest.param({"port": 81}, True, id="other port"),
        pytest.param({"port": 80, "protocol": "UDP"}, True, id="other protocol"),
        pytest.param({"port": 80, "ip": "10.0.0.1"}, False, id="same address"),
        pytest.param({"port": 80, "ip": "10.0.0.2"}, True, id="other address"),
    ],
)
def test_node_with_host_port_in_use_is_rejected(wanted, is_free):
    running = [with_port("old", 80, ip="10.0.0.1", nodeName="a"), pod("plain", nodeName="a")]
    state = snapshot([node(), node("b")], running)
    in_use = rejection("node(s) didn't have free ports for the requested pod ports", is_unresolvable=False)
    assert rejections(node_ports, with_port("web", **wanted), state) == ({} if is_free else {"a": in_use})


def test_pod_without_host_ports_needs_no_check_of_ports():
    assert node_ports(info(pod()), snapshot([node()])) is None


def taint(effect="NoSchedule", **fields):
    return {"key": "dedicated", "value": "db", "effect": effect, **fields}


@pytest.mark.parametrize(
    ("taints", "toleration", "is_rejected"),
    [
        pytest.param([taint()], None, True, id="not tolerated"),
        pytest.param([taint("NoExecute")], None, True, id="that evicts"),
        pytest.param([taint("PreferNoSchedule")], None, False, id="that only scores"),
        pytest.param([taint()], {"key": "dedicated", "value": "db"}, False, id="tolerated value"),
        pytest.param([taint()], {"key": "dedicated", "value": "web"}, True, id="tolerated other value"),
        pytest.param([taint()], {"key": "dedicated", "operator": "Exists"}, False, id="tolerated key"),
        pytest.param([taint()], {"operator": "Exists"}, False, id="everything tolerated"),
        pytest.param([taint()], {"operator": "Exists", "effect": "NoExecute"}, True, id="other effect"),
        pytest.param(
            [taint(), taint("NoExecute")],
            {"operator": "Exists", "effect": "NoSchedule"},
            True,
            id="one of two",
        ),
    ],
)
def test_node_with_taint_that_is_not_tolerated_is_rejected(taints, toleration, is_rejected):
    tolerations = [] if toleration is None else [toleration]
    found = rejections(taint_toleration, pod(tolerations=tolerations), snapshot([node(taints=taints)]))
    assert found == ({"a": rejection("node(s) had untolerated taint(s)")} if is_rejected else {})


def test_reason_names_taint_before_1_34():
    taints = [taint("PreferNoSchedule"), taint(key="other", value=""), taint()]
    state = snapshot([node(taints=taints)], minor="1.33")
    assert rejections(taint_toleration, pod(), state) == {
        "a": rejection("node(s) had untolerated taint {other: }")
    }


@pytest.mark.parametrize(
    ("arguments", "is_ignored"),
    [
        ({"ignored_resources": ("example.com/gpu",)}, True),
        ({"ignored_resource_groups": ("example.com",)}, True),
        ({"ignored_resource_groups": ("com",)}, False),
        ({"ignored_resources": ("cpu",)}, False),
    ],
)
def test_ignored_extended_resources_are_not_checked(arguments, is_ignored):
    check = partial(resources_fit, args=NodeResourcesFitArgs(**arguments))
    gpu = pod(requests={"example.com/gpu": "1"})
    assert bool(rejections(check, gpu, snapshot([node()]))) != is_ignored
    assert rejections(check, pod(requests={"cpu": "9"}), snapshot([node()]))


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
