"""Deployment: the sizes of the ReplicaSets in each step of a rollout."""

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.deployment.rolling import new_set_size, old_set_sizes
from mockube.controller_manager.controllers.deployment.state import (
    DeploymentState,
    DeploymentView,
    ReplicaSetView,
    resolve_fenceposts,
)
from tests.support.controllers.deployments import (
    RECREATE,
    DeploymentHarness,
    deployment,
    replicaset,
    rolling,
    template,
)


def sets(*sizes, availables=None):
    """Return ReplicaSets, oldest first; all of their pods are available by default."""
    counts = availables or sizes
    return [
        ReplicaSetView.of(
            {
                **replicaset(name=f"rs{number}", replicas=size),
                "status": {"replicas": max(size, available), "availableReplicas": available},
            }
        )
        for number, (size, available) in enumerate(zip(sizes, counts, strict=True))
    ]


def view(replicas, surge, unavailable):
    return DeploymentView(deployment(replicas=replicas, strategy=rolling(surge, unavailable)))


@pytest.mark.parametrize(
    ("wanted", "new", "old_sets", "expected"),
    [
        pytest.param((10, 0, 2), 0, [10], 0, id="no surge"),
        pytest.param((10, 2, 0), 0, [10], 2, id="surge"),
        pytest.param((10, 2, 0), 0, [5], 7, id="smaller old sets"),
        pytest.param((10, 5, 5), 6, [2], 10, id="limited by replicas"),
        pytest.param((10, 2, 2), 5, [4, 4], 5, id="surplus pods do not scale down the new set"),
        pytest.param((5, 2, 2), 8, [0], 5, id="oversized new set scales down"),
        pytest.param((3, "25%", "25%"), 0, [3], 1, id="percentage is rounded up"),
        pytest.param((0, 2, 2), 0, [0], 0, id="zero replicas"),
    ],
)
def test_new_set_scales_up_within_surge(wanted, new, old_sets, expected):
    assert new_set_size(view(*wanted), new, sets(*old_sets)) == expected


def test_surplus_available_pods_of_old_sets_limit_new_set():
    assert new_set_size(view(10, 2, 2), 2, sets(8, availables=[10])) == 2
    assert new_set_size(view(10, 2, 2), 2, sets(8, availables=[9])) == 3


@pytest.mark.parametrize(
    ("wanted", "new", "old_sets", "expected"),
    [
        pytest.param((10, 2, 2), (2, 0), [(10, 10)], [8], id="old set scales down to the available minimum"),
        pytest.param((10, 2, 0), (2, 0), [(10, 10)], [10], id="no unavailable pods allowed"),
        pytest.param((10, 2, 0), (2, 2), [(10, 10)], [8], id="new pods replace old ones"),
        pytest.param((10, 2, 2), (4, 2), [(8, 8)], [6], id="unavailable new pods do not count"),
        pytest.param((10, 3, 2), (5, 0), [(8, 7)], [8], id="crashing new pods keep old pods"),
        pytest.param((10, 3, 2), (8, 7), [(5, 0)], [1], id="rollback deletes crashing pods"),
        pytest.param((10, 3, 2), (0, 0), [(8, 8), (5, 0)], [8, 0], id="rollover deletes crashing pods first"),
        pytest.param(
            (10, 3, 2), (0, 0), [(7, 7), (6, 6)], [2, 6], id="rollover deletes pods of the oldest set"
        ),
        pytest.param((10, 0, 2), (2, 2), [(3, 3), (5, 5)], [1, 5], id="oldest set scales down first"),
        pytest.param((4, 1, 1), (4, 4), [(1, 1)], [0], id="last old pods are deleted"),
        pytest.param(
            (10, 2, 0), (2, 2), [(8, 10)], [8], id="pods of a shrinking old set count as unavailable"
        ),
        pytest.param((4, 2, 0), (2, 4), [(4, 4)], [2], id="pods of a shrinking new set count as unavailable"),
        pytest.param((1, 0, 1), (0, 0), [(1, 1)], [0], id="single replica without surge"),
    ],
)
def test_old_sets_scale_down_within_max_unavailable(wanted, new, old_sets, expected):
    sizes, availables = zip(*old_sets, new, strict=True)
    *old_sets, new_set = sets(*sizes, availables=availables)
    state = DeploymentState(deployment=view(*wanted), new=new_set, old_sets=old_sets)
    found = old_set_sizes(state)
    assert [found.get(old.name, old.replicas) for old in old_sets] == expected


@pytest.fixture
def cluster():
    return DeploymentHarness()


def size_changes(cluster, rounds=30):
    """Return each change of the sets' sizes; pods become ready one round after their creation."""
    seen = [cluster.sizes]
    for _ in range(rounds):
        cluster.roll_on()
        if cluster.sizes != seen[-1]:
            seen.append(cluster.sizes)
        cluster.manage()
        cluster.finish()
        cluster.run_all()
    return [tuple(sizes.values()) for sizes in seen]


def test_rollout_with_surge(cluster):
    cluster.deploy(replicas=3, strategy=rolling(1, 0)).settle()
    cluster.release("a:2")
    assert size_changes(cluster) == [(3,), (3, 1), (2, 1), (2, 2), (1, 2), (1, 3), (0, 3)]


def test_rollout_with_max_unavailable(cluster):
    cluster.deploy(replicas=4, strategy=rolling(0, 2)).settle()
    cluster.release("a:2")
    assert size_changes(cluster) == [(4,), (4, 0), (2, 0), (2, 2), (0, 2), (0, 4)]


def test_rollout_with_full_surge(cluster):
    cluster.deploy(replicas=3, strategy=rolling("100%", 0)).settle()
    cluster.release("a:2")
    assert size_changes(cluster) == [(3,), (3, 3), (0, 3)]


def test_rollback_during_rollout_reuses_old_set(cluster):
    cluster.deploy(replicas=4).settle()
    cluster.release("a:2")
    cluster.roll_on()
    cluster.manage()
    cluster.roll_on()
    cluster.release("a:1")
    cluster.settle()
    assert cluster.sizes == {"a:1": 4, "a:2": 0}
    assert cluster.revisions == {"a:1": "3", "a:2": "2"}


def test_third_template_during_rollout_replaces_both(cluster):
    cluster.deploy(replicas=10, strategy=rolling(2, 2)).settle()
    cluster.release("a:2")
    for _ in range(3):
        cluster.roll_on()
        cluster.manage()
        cluster.finish()
        cluster.run_all()
    assert cluster.sizes["a:2"] > 0
    cluster.release("a:3")
    cluster.settle()
    assert cluster.sizes == {"a:1": 0, "a:2": 0, "a:3": 10}


def test_failing_rollout_stops_within_limits(cluster):
    cluster.deploy(replicas=10, strategy=rolling(3, 2)).settle()
    cluster.release("broken")
    for _ in range(10):
        cluster.settle(machine=False)
        cluster.finish()
    assert cluster.sizes == {"a:1": 8, "broken": 5}
    assert len(cluster.ready_pods) == 8


def test_scaling_events_have_upstreams_messages(cluster):
    cluster.deploy(replicas=1).settle()
    cluster.release("a:2")
    cluster.settle()
    old, new = (meta.name(it) for it in cluster.sets)
    assert [event for event in cluster.events if event[1] == "ScalingReplicaSet"] == [
        ("Normal", "ScalingReplicaSet", f"Scaled up replica set {old} from 0 to 1"),
        ("Normal", "ScalingReplicaSet", f"Scaled up replica set {new} from 0 to 1"),
        ("Normal", "ScalingReplicaSet", f"Scaled down replica set {old} from 1 to 0"),
    ]


def test_set_created_with_0_replicas_records_no_event(cluster):
    cluster.deploy(replicas=0).settle()
    assert cluster.sizes == {"a:1": 0}
    assert cluster.events == []


# --- Recreate


def test_recreate_waits_for_last_old_pod(cluster):
    cluster.deploy(replicas=2, strategy=RECREATE).settle()
    cluster.release("a:2")
    for _ in range(3):
        cluster.roll_on()
        cluster.manage()
    assert cluster.sizes == {"a:1": 0}
    last = cluster.all(PODS)[0]
    cluster.finish()
    cluster.add(PODS, last)
    cluster.roll_on()
    assert cluster.sizes == {"a:1": 0}
    cluster.run(cluster.get(PODS, meta.name(last)), phase="Succeeded")
    cluster.roll_on()
    assert cluster.sizes == {"a:1": 0, "a:2": 2}


def test_recreate_creates_all_pods_at_once(cluster):
    cluster.deploy(replicas=3, strategy=RECREATE)
    cluster.roll_on()
    assert cluster.sizes == {"a:1": 3}


def test_recreate_reuses_former_set(cluster):
    cluster.deploy(replicas=2, strategy=RECREATE).settle()
    cluster.release("a:2")
    cluster.settle()
    cluster.release("a:1")
    cluster.settle()
    assert cluster.sizes == {"a:1": 2, "a:2": 0}


def keys_for_change(cluster, change):
    watch = next(it for it in DEPLOYMENT.watches if it.resource is PODS)
    return [key.name for key in watch.keys(cluster.caches(), change)]


@pytest.mark.parametrize(
    ("strategy", "phase", "gone", "expected"),
    [
        pytest.param(RECREATE, "Running", True, ["web"], id="a pod was deleted"),
        pytest.param(RECREATE, "Failed", False, ["web"], id="a pod ended"),
        pytest.param(RECREATE, "Running", False, [], id="running pod changed"),
        pytest.param(rolling(1, 1), "Running", True, [], id="rolling update does not wait for pods"),
    ],
)
def test_pod_changes_wake_recreate_deployments_only(cluster, strategy, phase, gone, expected):
    cluster.deploy(replicas=1, strategy=strategy).settle()
    cluster.controller = DEPLOYMENT
    cluster.run(cluster.pods[0], phase=phase)
    view_of = PODS.view(cluster.all(PODS)[0])
    assert keys_for_change(cluster, _change(view_of, gone=gone)) == expected


def _change(view_of, *, gone):
    return Change(view_of, None if gone else view_of)


def test_ownerless_pods_map_to_no_deployment(cluster):
    cluster.deploy(strategy=RECREATE)
    metadata = {"name": "p", "namespace": "default"}
    assert keys_for_change(cluster, _change(PODS.view({"metadata": metadata}), gone=True)) == []


# --- ownership of the sets


def test_matching_orphan_set_is_adopted_as_old(cluster):
    cluster.add(REPLICA_SETS, replicaset(name="stray", replicas=1, template=template("z:1")))
    stray = cluster.get(REPLICA_SETS, "stray")
    cluster.put(REPLICA_SETS, meta.with_labels(stray, {"app": "web"}))
    cluster.deploy()
    assert cluster.roll_on() == [("adopt", "replicasets", "stray")]
    cluster.settle()
    assert cluster.sizes == {"z:1": 0, "a:1": 3}


def test_set_that_no_longer_matches_is_released(cluster):
    cluster.deploy().settle()
    name = meta.name(cluster.sets[0])
    cluster.put(REPLICA_SETS, meta.with_labels(cluster.sets[0], {"app": "free"}))
    assert cluster.roll_on() == [("release", "replicasets", name)]
    assert meta.controller_of(cluster.get(REPLICA_SETS, name)) is None


def test_empty_selector_is_refused(cluster):
    cluster.add(DEPLOYMENTS, deployment(selector={}))
    cluster.roll_on()
    assert cluster.events == [
        (
            "Warning",
            "SelectingAll",
            "This deployment is selecting all pods. A non-empty selector is required.",
        )
    ]
    assert cluster.status == {"observedGeneration": 1}
    assert cluster.sets == []


@pytest.mark.parametrize("selector", [{"matchExpressions": [{"key": "a", "operator": "Near"}]}, None])
def test_selector_that_matches_nothing_owns_no_pods(cluster, selector):
    cluster.add(DEPLOYMENTS, deployment(selector=selector))
    assert cluster.roll_on() == []


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        pytest.param("25%", "25%", 10, (3, 2), id="surge up, unavailable down"),
        pytest.param("25%", "25%", 1, (1, 0), id="one pod is replaced by surge"),
        pytest.param("39%", "39%", 10, (4, 3), id="not rounded to the nearest"),
        pytest.param("0%", "10%", 1, (0, 1), id="both round to zero"),
        pytest.param(0, 0, 5, (0, 1), id="both zero"),
        pytest.param("100%", 0, 7, (7, 0), id="full surge"),
        pytest.param(2, "50%", 3, (2, 1), id="number and percentage"),
        pytest.param(None, None, 3, (0, 1), id="both unset"),
        pytest.param("25%", "25%", 0, (0, 1), id="zero replicas of both"),
    ],
)
def test_fenceposts_are_resolved(surge, unavailable, replicas, expected):
    assert resolve_fenceposts(surge, unavailable, replicas) == expected
