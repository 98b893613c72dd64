"""Deployment: scaling when idle, during a rollout and when paused."""

import pytest

from mockube.client.kinds import REPLICA_SETS
from mockube.controller_manager.controllers.deployment.state import (
    DeploymentState,
    DeploymentView,
    ReplicaSetView,
)
from mockube.controller_manager.controllers.deployment.sync import is_scaling_event, scaled_sizes
from tests.support.controllers.deployments import RECREATE, DeploymentHarness, deployment, replicaset, rolling


def set_view(number, size, *, desired=None, maximum=None, available=None):
    annotations = {"desired-replicas": desired, "max-replicas": maximum}
    tree = replicaset(name=f"rs{number}", replicas=size)
    tree["metadata"]["annotations"] = {
        f"deployment.kubernetes.io/{key}": str(value)
        for key, value in annotations.items()
        if value is not None
    }
    tree["metadata"]["creationTimestamp"] = f"2030-01-01T00:00:{number:02}Z"
    return ReplicaSetView.of(
        {**tree, "status": {"availableReplicas": size if available is None else available}}
    )


def sizes_after_scaling(wanted, old_sets, new, *, before, surge=0, strategy=None):
    """Return the sizes of all sets, oldest first, after scaling a Deployment of `before` replicas."""
    view = DeploymentView(deployment(replicas=wanted, strategy=strategy or rolling(surge, 0)))
    views = [
        set_view(n, size, desired=before, maximum=before + surge) for n, size in enumerate([*old_sets, new])
    ]
    state = DeploymentState(deployment=view, new=views[-1], old_sets=views[:-1])
    found = scaled_sizes(state)
    return [found.get(it.name, it.replicas) for it in views]


@pytest.mark.parametrize(
    ("wanted", "before", "old_sets", "new", "expected"),
    [
        pytest.param(12, 10, [], 10, [12], id="one set scales up"),
        pytest.param(5, 10, [], 10, [5], id="one set scales down"),
        pytest.param(0, 10, [], 10, [0], id="one set scales to zero"),
        pytest.param(12, 10, [10], 0, [12, 0], id="only the active old set scales up"),
        pytest.param(20, 10, [5], 5, [10, 10], id="both sets double"),
        pytest.param(5, 10, [5], 5, [2, 3], id="both sets halve, the older one is rounded down"),
        pytest.param(12, 10, [5], 5, [6, 6], id="both sets scale up equally"),
        pytest.param(11, 10, [5], 5, [5, 6], id="remainder goes to the newer of equal sets"),
        pytest.param(15, 10, [8], 2, [12, 3], id="scales up in proportion"),
        pytest.param(4, 10, [8], 2, [3, 1], id="scales down in proportion"),
        pytest.param(20, 10, [3, 3], 4, [6, 6, 8], id="three sets"),
        pytest.param(
            5,
            10,
            [8, 1],
            1,
            [3, 1, 1],
            id="halves are rounded away from zero, and the largest set compensates",
        ),
        pytest.param(0, 10, [6], 4, [0, 0], id="all sets scale to zero"),
        pytest.param(10, 10, [5], 5, [5, 5], id="unchanged"),
    ],
)
def test_proportional_scaling_sizes(wanted, before, old_sets, new, expected):
    assert sizes_after_scaling(wanted, old_sets, new, before=before) == expected


def test_surge_is_included_in_proportional_scaling():
    assert sizes_after_scaling(20, [8], 4, before=10, surge=2) == [15, 7]


def test_new_set_is_scaled_when_no_set_has_pods():
    assert sizes_after_scaling(3, [0, 0], 0, before=0) == [0, 0, 3]


def test_newest_set_is_scaled_without_new_set():
    view = DeploymentView(deployment(replicas=3))
    state = DeploymentState(deployment=view, new=None, old_sets=[set_view(0, 0), set_view(1, 0)])
    assert scaled_sizes(state) == {"rs1": 3}
    assert scaled_sizes(DeploymentState(deployment=view, new=None, old_sets=[])) == {}


def test_only_active_new_set_is_scaled():
    view = DeploymentView(deployment(replicas=5))
    state = DeploymentState(
        deployment=view, new=set_view(2, 5, desired=5), old_sets=[set_view(0, 2), set_view(1, 1)]
    )
    assert scaled_sizes(state) == {"rs0": 0, "rs1": 0}


def test_recreate_scales_only_with_one_active_set():
    assert sizes_after_scaling(20, [5], 5, before=10, strategy=RECREATE) == [5, 5]


def test_proportions_without_annotation_use_current_replicas():
    view = DeploymentView({**deployment(replicas=20, strategy=rolling(0, 1)), "status": {"replicas": 10}})
    state = DeploymentState(deployment=view, new=set_view(1, 4), old_sets=[set_view(0, 6)])
    assert scaled_sizes(state) == {"rs0": 12, "rs1": 8}


def test_proportions_without_annotation_and_status_scale_largest_set():
    view = DeploymentView(deployment(replicas=20, strategy=rolling(0, 1)))
    state = DeploymentState(deployment=view, new=set_view(1, 4, maximum=0), old_sets=[set_view(0, 6)])
    assert scaled_sizes(state) == {"rs0": 16, "rs1": 4}


@pytest.mark.parametrize(
    ("desired", "size", "expected"),
    [
        pytest.param("3", 3, False, id="unchanged replicas"),
        pytest.param("2", 3, True, id="changed replicas"),
        pytest.param("2", 0, False, id="set without pods is ignored"),
        pytest.param(None, 3, False, id="without annotation"),
        pytest.param("-2", 3, False, id="negative number"),
        pytest.param("99999999999", 3, False, id="number beyond 32 bits"),
    ],
)
def test_scaling_is_detected_by_desired_replicas_annotation(desired, size, expected):
    state = DeploymentState(
        deployment=DeploymentView(deployment(replicas=3)), new=set_view(0, size, desired=desired), old_sets=[]
    )
    assert is_scaling_event(state) is expected


def test_proportional_scaling_keeps_total_and_rollout_continues():
    cluster = DeploymentHarness().deploy(replicas=10, strategy=rolling(2, 2))
    cluster.settle()
    cluster.release("a:2")
    cluster.settle(machine=False)
    cluster.scale(20)
    cluster.roll_on()
    assert sum(cluster.sizes.values()) == 22
    assert all(size > 2 for size in cluster.sizes.values())
    cluster.settle()
    assert cluster.sizes == {"a:1": 0, "a:2": 20}


def test_paused_deployment_scales_without_rolling():
    cluster = DeploymentHarness().deploy(replicas=2)
    cluster.settle()
    cluster.pause()
    cluster.release("a:2")
    cluster.scale(4)
    cluster.settle()
    assert cluster.sizes == {"a:1": 4}


def test_manually_scaled_set_gets_desired_annotation():
    cluster = DeploymentHarness().deploy(replicas=2)
    cluster.settle()
    cluster.scale(4)
    name = cluster.sets[0]["metadata"]["name"]
    cluster.respecify(REPLICA_SETS, name, ("replicas",), 4)
    cluster.release("a:2")
    cluster.settle()
    assert cluster.sizes == {"a:1": 0, "a:2": 4}
