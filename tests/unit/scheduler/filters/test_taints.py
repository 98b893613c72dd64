"""Nodes with taints that a pod does not tolerate, and cordoned nodes."""

import pytest

from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.filters.taints import node_unschedulable, taint_toleration
from tests.support.controllers.scheduler_objects import node, pod, rejections, snapshot


def rejection(*reasons, is_unresolvable=True):
    return Rejection(reasons, is_unresolvable=is_unresolvable)


UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}


@pytest.mark.parametrize(("tolerations", "rejected"), [([], ["b"]), ([UNSCHEDULABLE], [])])
def test_unschedulable_node_is_rejected_unless_its_taint_is_tolerated(tolerations, rejected):
    state = snapshot([node(), node("b", unschedulable=True)])
    found = rejections(node_unschedulable, pod(tolerations=tolerations), state)
    assert found == dict.fromkeys(rejected, rejection("node(s) were unschedulable"))


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
