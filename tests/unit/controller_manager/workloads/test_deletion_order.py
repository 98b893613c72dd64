from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.podview import PodView
from mockube.controller_manager.workloads.deletion_order import deletion_cost, pods_to_delete_first

NOW = datetime(2030, 1, 10, tzinfo=UTC)


def time_ago(seconds):
    return format_time(NOW - timedelta(seconds=seconds))


def pod(name, *, node="n1", phase="Running", ready=3600, cost=None, restarts=0, created=3600, **fields):
    annotations = {} if cost is None else {"controller.kubernetes.io/pod-deletion-cost": cost}
    conditions = [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": ready}]
    conditions = [{**it, "lastTransitionTime": time_ago(ready) if ready else ""} for it in conditions]
    return PodView.of(
        {
            "metadata": {
                "name": name,
                "uid": fields.get("uid", name),
                "creationTimestamp": time_ago(created),
                "annotations": annotations,
            },
            "spec": {"nodeName": node, "initContainers": fields.get("inits", [])},
            "status": {
                "phase": phase,
                "conditions": conditions,
                "containerStatuses": [{"name": "c", "restartCount": restarts}],
                "initContainerStatuses": fields.get("init_statuses", []),
            },
        }
    )


def names(pods):
    return [it.key.name for it in pods]


def sidecar(restarts):
    return {
        "inits": [{"name": "s", "restartPolicy": "Always"}],
        "init_statuses": [{"name": "s", "restartCount": restarts}],
    }


@pytest.mark.parametrize(
    ("goes", "stays"),
    [
        pytest.param(pod("a", node="", cost="9"), pod("b", phase="Pending", ready=None), id="unassigned"),
        pytest.param(
            pod("a", phase="Pending", ready=None), pod("b", phase="Unknown", ready=None), id="pending"
        ),
        pytest.param(pod("a", phase="Unknown", ready=None), pod("b", ready=None), id="unknown"),
        pytest.param(pod("a", ready=None, cost="9"), pod("b", cost="-9"), id="not ready"),
        pytest.param(pod("a", cost="-1"), pod("b"), id="negative deletion cost"),
        pytest.param(pod("a"), pod("b", cost="100", ready=1), id="dearer pods stay"),
        pytest.param(pod("a", ready=60), pod("b", ready=3600), id="ready for a shorter time"),
        pytest.param(pod("a", uid="1", ready=3600), pod("b", uid="2", ready=3500), id="as old: by uid"),
        pytest.param(pod("a", uid="2", ready=2), pod("b", uid="1", ready=3500), id="much younger"),
        pytest.param(pod("a", restarts=2), pod("b", restarts=1), id="restarted more often"),
        pytest.param(pod("a", **sidecar(2)), pod("b", **sidecar(1)), id="restarted sidecar"),
        pytest.param(pod("a", restarts=1), pod("b", **sidecar(9)), id="containers before sidecars"),
        pytest.param(pod("a", created=60), pod("b", created=4000), id="younger"),
        pytest.param(pod("a", ready=0), pod("b", ready=3600), id="ready without transition time"),
        pytest.param(pod("a", ready=-5), pod("b", ready=1), id="ready in the future"),
    ],
)
def test_deletion_rank_of_two_pods(goes, stays):
    for pods in ([goes, stays], [stays, goes]):
        assert names(pods_to_delete_first(pods, 1, pods if goes.node == stays.node else (), NOW)) == ["a"]


def test_pod_sharing_its_node_is_deleted_first():
    pods = [pod("alone", node="n1", ready=60), pod("x", node="n2"), pod("y", node="n2")]
    assert names(pods_to_delete_first(pods, 1, pods, NOW)) != ["alone"]


def test_related_pods_count_for_sharing():
    pods = [pod("a", node="n1", uid="1"), pod("b", node="n2", uid="2")]
    kin = [*pods, pod("c", node="n2")]
    assert names(pods_to_delete_first(pods, 1, kin, NOW)) == ["b"]
    assert names(pods_to_delete_first(pods, 1, pods, NOW)) == ["a"]


def test_finished_pods_do_not_count_for_sharing():
    pods = [pod("a", node="n1", uid="1"), pod("b", node="n2", uid="2")]
    kin = [*pods, pod("c", node="n2", phase="Failed", ready=None)]
    assert names(pods_to_delete_first(pods, 1, kin, NOW)) == ["a"]


def test_pods_are_not_ranked_if_all_are_deleted():
    pods = [pod("b"), pod("a", node="")]
    assert names(pods_to_delete_first(pods, 2, (), NOW)) == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("5", 5),
        ("-5", -5),
        ("0", 0),
        ("-2147483648", -(2**31)),
        ("2147483648", 0),
        ("07", 0),
        ("+5", 0),
        ("1.5", 0),
        ("", 0),
        ("-", 0),
        ("٣", 0),
    ],
)
def test_deletion_cost_is_32_bit_integer(text, cost):
    annotations = {"controller.kubernetes.io/pod-deletion-cost": text}
    assert deletion_cost({"metadata": {"annotations": annotations}}) == cost
