"""Node filtering with fields whose types do not match the schema."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.controller_manager.cache.store import Store
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.choice import MALFORMED, find_feasible
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.scheduler.preemption import preempt
from mockube.controller_manager.scheduler.volumes import Storage


def node(name, **fields):
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": {"pods": "9"}}} | fields


@pytest.mark.parametrize("spec", [7, [7], {"taints": 7}, {"taints": [7]}])
def test_node_that_cannot_be_evaluated_is_filtered_out(spec):
    cluster = SchedulerCache()
    cluster.set_node(node("bad", spec=spec))
    cluster.set_node(node("good"))
    none = Store()
    storage = Storage(claims=none, volumes=none, classes=none)
    snapshot = ClusterSnapshot(nodes=cluster.nodes(), labels_of_namespace=lambda _: {}, storage=storage)
    metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    pod = PodInfo.of(
        PodView.of({"metadata": metadata, "spec": {"containers": []}, "status": {}}), FeatureGates()
    )
    feasible = find_feasible(pod, snapshot)
    assert [one.name for one in feasible.feasible] == ["good"]
    assert feasible.rejections == {"bad": MALFORMED}


def test_unreadable_node_is_ignored():
    cluster = SchedulerCache()
    with pytest.raises(AttributeError):
        cluster.set_node(node("bad", status=7))
    assert cluster.nodes() == []


def test_unreadable_disruption_budget_protects_nothing():
    cluster = SchedulerCache()
    cluster.set_node(node("a", status={"allocatable": {"pods": "1"}}))
    lesser = pod("lesser", nodeName="a", priority=1)
    cluster.assign_pod(lesser, "a")
    bad = [
        budget(spec=7),
        budget(spec={"selector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}}),
        budget(status={"disruptionsAllowed": "many"}),
        budget(status={"disruptedPods": 7}),
        budget(status=[7]),
        {"metadata": {"name": "pdb"}},
    ]
    greater, snapshot = pod("greater", priority=10), snapshot_of(cluster)
    for budgets, violations in ((bad, 0), ([*bad, budget()], 1)):
        outcome = preempt(greater, snapshot, find_feasible(greater, snapshot), budgets)
        assert (outcome.node, outcome.victims, outcome.pdb_violations) == ("a", [lesser], violations)


def budget(**fields):
    metadata = {"name": "pdb", "namespace": "default", "uid": "b"}
    return {"metadata": metadata, "spec": {"selector": {"matchLabels": {"app": "web"}}}} | fields


def pod(name, **spec):
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "resourceVersion": "1",
        "labels": {"app": "web"},
    }
    return PodInfo.of(
        PodView.of({"metadata": metadata, "spec": {"containers": [], **spec}, "status": {}}), FeatureGates()
    )


def snapshot_of(cluster):
    none = Store()
    storage = Storage(claims=none, volumes=none, classes=none)
    return ClusterSnapshot(nodes=cluster.nodes(), labels_of_namespace=lambda _: {}, storage=storage)
