"""The pods that are created and deleted so that each node has the pod that it should have."""

from datetime import timedelta

import pytest

from mockube.client.podview import PodView
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.daemonset.pods import pod_actions, pod_changes
from mockube.controller_manager.controllers.daemonset.state import (
    DaemonState,
    FailedPodsBackoff,
    oldest_first,
    pods_by_node,
)
from tests.support.controllers.daemonsets import daemonset, rolling

NOW = SteppedClock().now()
ENDING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


def node(name, effect=""):
    return {
        "metadata": {"name": name},
        "spec": {"taints": [{"key": "k", "effect": effect}] if effect else []},
    }


ONE_NODE = (node("a"),)


def pod(name, on="a", *, phase="Running", ready=True, revision="old", age=0, **metadata):
    created = f"2030-01-01T00:00:{59 - age:02d}Z"
    labels = {"controller-revision-hash": revision}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2020-01-01T00:00:00Z"}
    return PodView.of(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "creationTimestamp": created,
                "labels": labels,
                **metadata,
            },
            "spec": {"nodeName": on} if on else {},
            "status": {"phase": phase, "conditions": [condition]},
        }
    )


def state_of(*pods, nodes=ONE_NODE, surge=0, by_node=None, **status):
    subject = daemonset(updateStrategy=rolling(surge, 0 if surge else 1))
    return DaemonState(
        daemon_set={**subject, "status": status},
        nodes=nodes,
        pods=by_node or pods_by_node(pods),
        all_pods=pods,
        revision_hash="new",
        now=NOW,
    )


def changes_of(*pods, backoff=None, **state):
    changes = pod_changes(state_of(*pods, **state), backoff or FailedPodsBackoff())
    return changes.create, sorted(each.key.name for each in changes.delete)


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        ([], [node("a"), node("b")], (["a", "b"], [])),
        ([pod("x")], [node("a"), node("b")], (["b"], [])),
        ([], [node("a", "NoSchedule")], ([], [])),
        ([pod("x")], [node("a", "NoSchedule")], ([], [])),
        ([pod("x")], [node("a", "NoExecute")], ([], ["x"])),
        ([pod("x", **ENDING)], [node("a", "NoExecute")], ([], [])),
        ([pod("x", "gone")], [node("a")], (["a"], [])),
        ([pod("x", age=1), pod("y", age=2), pod("z", age=3)], [node("a")], ([], ["x", "y"])),
        ([pod("x", age=1, **ENDING), pod("y", age=2)], [node("a")], ([], [])),
        ([pod("x", phase="Succeeded")], [node("a")], ([], ["x"])),
        ([pod("x", phase="Failed")], [node("a")], ([], ["x"])),
        ([pod("x", phase="Failed", **ENDING)], [node("a")], (["a"], [])),
        ([pod("x", phase="Failed"), pod("y")], [node("a")], ([], ["x"])),
    ],
)
def test_each_node_keeps_its_oldest_pod(pods, nodes, expected):
    assert changes_of(*pods, nodes=nodes) == expected


def test_pod_that_waits_for_a_missing_node_is_deleted():
    bound, waiting = pod("bound", "gone"), pod("waiting", "")
    assert changes_of(by_node={"gone": [bound, waiting], "a": [pod("x")]}) == ([], ["waiting"])


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        ([pod("old", age=2), pod("new", revision="new", ready=False)], [node("a")], ([], [])),
        ([pod("old", age=2), pod("new", revision="new")], [node("a")], ([], ["old"])),
        (
            [pod("old", age=2, ready=False), pod("new", revision="new", ready=False)],
            [node("a")],
            ([], ["old"]),
        ),
        ([pod("x", age=2), pod("y")], [node("a")], ([], ["y"])),
        ([pod("x", age=2, revision="new"), pod("y", revision="new")], [node("a")], ([], ["y"])),
        (
            [pod("old", age=4), pod("older", age=5), pod("new", revision="new", ready=False)],
            [node("a")],
            ([], ["old"]),
        ),
        ([pod("x")], [node("a")], ([], [])),
        ([pod("x", **ENDING)], [node("a")], (["a"], [])),
        ([pod("x", **ENDING)], [node("a", "NoSchedule")], ([], [])),
    ],
)
def test_node_has_an_old_and_a_new_pod_during_an_update_with_surge(pods, nodes, expected):
    assert changes_of(*pods, nodes=nodes, surge=1) == expected


def test_failed_pod_is_deleted_with_backoff_of_its_node_and_generation():
    backoff = FailedPodsBackoff().with_deletion((3, "a"), NOW)
    failed = pod("x", phase="Failed")
    assert changes_of(failed, backoff=backoff, observedGeneration=3) == ([], [])
    assert pod_changes(state_of(failed, observedGeneration=3), backoff).delays == [timedelta(seconds=1)]
    assert changes_of(failed, backoff=backoff, observedGeneration=4) == ([], ["x"])
    other_node = pod("x", "b", phase="Failed")
    assert changes_of(other_node, nodes=[node("b")], backoff=backoff, observedGeneration=3) == ([], ["x"])


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (
            "Failed",
            (
                "Warning",
                "FailedDaemonPod",
                "Found failed daemon pod default/x on node a, will try to kill it",
            ),
        ),
        (
            "Succeeded",
            (
                "Normal",
                "SucceededDaemonPod",
                "Found succeeded daemon pod default/x on node a, will try to delete it",
            ),
        ),
    ],
)
def test_ended_pod_records_an_event(phase, expected):
    (event,) = pod_changes(state_of(pod("x", phase=phase)), FailedPodsBackoff()).events
    assert (event.type, event.reason, event.message) == expected


def test_one_reconciliation_changes_a_burst_of_pods():
    state = state_of()
    create, delete = pod_actions(
        state, [str(number) for number in range(300)], [pod(str(n)) for n in range(300)]
    )
    assert (len(create.bodies), len(delete.objects)) == (250, 250)
    assert pod_actions(state, (), ()) == ()


def test_backoff_doubles_up_to_a_limit_and_ends():
    backoff, key, now = FailedPodsBackoff(), (1, "a"), NOW
    delays = []
    for _ in range(12):
        backoff = backoff.with_deletion(key, now)
        delays.append(backoff.delay(key, now).total_seconds())
        now += timedelta(seconds=delays[-1])
        assert backoff.delay(key, now) == timedelta()
    assert delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    late = now + timedelta(minutes=15)
    assert backoff.with_deletion(key, late).delay(key, late) == timedelta(minutes=15)
    later = late + timedelta(seconds=1)
    assert backoff.with_deletion(key, later).delay(key, later) == timedelta(seconds=1)


def test_backoff_forgets_nodes_after_twice_its_limit():
    limit = timedelta(minutes=30)
    first = FailedPodsBackoff().with_deletion((1, "a"), NOW)
    assert first.with_deletion((1, "b"), NOW + limit).by_node.keys() == {(1, "a"), (1, "b")}
    assert first.with_deletion((1, "b"), NOW + limit + timedelta(seconds=1)).by_node.keys() == {(1, "b")}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "34%", "maxUnavailable": 2}}, (2, 2)),
        ({"type": "OnDelete", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}, (0, 0)),
        ({"type": "RollingUpdate"}, (0, 0)),
        (None, (0, 0)),
    ],
)
def test_limits_of_an_update_are_those_of_a_rolling_update(strategy, expected):
    subject = daemonset(updateStrategy=strategy)
    state = DaemonState(daemon_set=subject, nodes=(), pods={}, all_pods=(), revision_hash="", now=NOW)
    assert (state.max_surge(3), state.max_unavailable(3)) == expected


def test_pods_of_a_node_are_those_that_have_not_ended_and_are_deleted():
    pods = [
        pod("runs"),
        pod("ends", **ENDING),
        pod("ended", phase="Failed"),
        pod("gone", phase="Failed", **ENDING),
        pod("elsewhere", ""),
    ]
    assert {name: [each.key.name for each in found] for name, found in pods_by_node(pods).items()} == {
        "a": ["runs", "ends", "ended"]
    }


def test_bound_and_old_pods_are_first():
    pods = [
        pod("waiting", "", age=9),
        pod("young", age=1),
        pod("b", age=5),
        pod("a", age=5),
        pod("undated", creationTimestamp=None),
    ]
    assert [each.key.name for each in oldest_first(pods)] == ["undated", "a", "b", "young", "waiting"]
