"""CloneSet: the order in which pods are updated and deleted."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.podview import PodView
from mockube.packs.kruise.controllers.cloneset import order

NOW = datetime(2030, 1, 10, tzinfo=UTC)


def time_ago(seconds):
    return format_time(NOW - timedelta(seconds=seconds))


def pod(name, *, node="n1", phase="Running", ready=60, cost=None, restarts=0, created=60):
    message = (
        [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": time_ago(ready)}]
    )
    annotations = {} if cost is None else {"controller.kubernetes.io/pod-deletion-cost": cost}
    return PodView.of(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "creationTimestamp": time_ago(created),
                "annotations": annotations,
            },
            "spec": {"nodeName": node},
            "status": {
                "phase": phase,
                "conditions": message,
                "containerStatuses": [{"name": "c", "restartCount": restarts}],
            },
        }
    )


def names(pods):
    return [it.key.name for it in pods]


LESS_MISSED = [
    pytest.param(pod("z", node=""), pod("a", phase="Pending"), id="without a node"),
    pytest.param(pod("z", phase="Pending", ready=None), pod("a", phase="Unknown", ready=None), id="pending"),
    pytest.param(pod("z", phase="Unknown"), pod("a", ready=None), id="unknown"),
    pytest.param(pod("z", ready=None), pod("a", ready=1), id="not ready"),
    pytest.param(pod("z", ready=30), pod("a", ready=31), id="ready last"),
    pytest.param(pod("z", restarts=2), pod("a", restarts=1), id="restarted more"),
    pytest.param(pod("z", created=30), pod("a", created=31), id="newer"),
]


@pytest.mark.parametrize(("first", "second"), LESS_MISSED)
def test_pods_are_ordered_for_update(first, second):
    assert names(order.for_update([second, first])) == names([first, second])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        *LESS_MISSED,
        pytest.param(pod("z", cost="-1"), pod("a", ready=1), id="cheaper"),
        pytest.param(pod("z"), pod("a", cost="+10", ready=61), id="cost with a plus sign"),
        pytest.param(pod("z"), pod("a", cost="008", ready=61), id="cost with leading zeros"),
    ],
)
def test_pods_are_ordered_for_deletion(first, second):
    assert names(order.for_deletion([second, first], lambda _: True, {})) == names([first, second])


def test_unavailable_pod_is_deleted_before_available_one():
    late, early = pod("z", ready=90), pod("a", ready=30)
    assert names(order.for_deletion([early, late], lambda it: it is early, {})) == ["z", "a"]


def test_deletion_cost_does_not_affect_update_order():
    assert names(order.for_update([pod("a", cost="-9", ready=31), pod("z", ready=30)])) == ["z", "a"]


def test_pods_are_ranked_by_node():
    pods = [
        pod("a", ready=30),
        pod("b", ready=20),
        pod("c", ready=10),
        pod("d", node="n2"),
        pod("e", node=""),
    ]
    assert order.ranks_by_node(pods) == {"c": 2.0, "b": 1.0}


def test_pods_are_ranked_by_topology():
    zones = {"n1": {"zone": "x"}, "n2": {"zone": "x"}, "n3": {"zone": "y"}, "n4": {}}
    pods = [pod("a", node="n1"), pod("b", node="n2", ready=5), pod("c", node="n3"), pod("d", node="n4")]
    weight = math.log(4)
    assert order.ranks_by_topology(pods, ["zone"], lambda name: zones.get(name, {})) == {
        "a": weight,
        "b": 2 * weight,
        "c": weight,
    }
