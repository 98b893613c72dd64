"""DaemonSet: node selection, rolling updates, status and Events."""

from datetime import timedelta

import orjson
import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import Remember
from mockube.controller_manager.controllers.daemonset.controller import DAEMON_SET
from mockube.controller_manager.controllers.daemonset.update import hash_of
from tests.support.controllers.daemonsets import (
    ON_DELETE,
    DaemonSetHarness,
    daemonset,
    node_of,
    rolling,
    template,
)

KEY = Key("default", "d")


def test_each_node_gets_a_pod_with_node_affinity():
    daemons = DaemonSetHarness(nodes=2)
    assert daemons.sync() == [
        ("create", "controllerrevisions"),
        ("create", "pods"),
        ("create", "pods"),
        ("update", "daemonsets"),
    ]
    pod = daemons.undeleted[0]
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
    assert required == {"nodeSelectorTerms": [{"matchFields": [field]}]}
    assert {one["key"].removeprefix("node.kubernetes.io/") for one in pod["spec"]["tolerations"]} == {
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    }
    assert meta.labels(pod)["pod-template-generation"] == "1"
    assert meta.labels(pod)["controller-revision-hash"]
    assert meta.generate_name(pod) == "d-"


def test_status_counts_nodes():
    daemons = DaemonSetHarness(nodes=2)
    daemons.sync()
    daemons.run(daemons.undeleted[0])
    daemons.sync()
    assert daemons.status == {
        "currentNumberScheduled": 2,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 2,
        "numberReady": 1,
        "observedGeneration": 1,
        "updatedNumberScheduled": 2,
        "numberAvailable": 1,
        "numberUnavailable": 1,
    }
    assert daemons.sync() == []


def test_pod_is_available_after_min_ready_seconds():
    daemons = DaemonSetHarness(nodes=1, minReadySeconds=30)
    daemons.settle()
    assert "numberAvailable" not in daemons.status
    assert daemons.plan(KEY).requeue_after == timedelta(seconds=30)
    daemons.clock.advance(30)
    daemons.sync()
    assert daemons.status["numberAvailable"] == 1


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({"nodeSelector": {"pool": "a"}}, {"a"}),
        ({"nodeName": "b"}, {"b"}),
        ({}, {"a", "b"}),
        ({"tolerations": [{"key": "k", "operator": "Exists"}]}, {"a", "b", "tainted"}),
    ],
)
def test_pods_are_created_for_suitable_nodes_only(spec, nodes):
    daemons = DaemonSetHarness(nodes=0, template=template(**spec))
    daemons.add_node("a", labels={"pool": "a"})
    daemons.add_node("b", labels={"pool": "b"})
    daemons.add_node("tainted", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    daemons.sync()
    assert set(map(node_of, daemons.undeleted)) == nodes


@pytest.mark.parametrize(("effect", "left"), [("NoSchedule", 1), ("NoExecute", 0)])
def test_later_taint_deletes_pod_only_with_no_execute(effect, left):
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    daemons.taint("n0", effect)
    daemons.settle()
    assert len(daemons.undeleted) == left
    assert (daemons.status["desiredNumberScheduled"], daemons.status["numberMisscheduled"]) == (0, left)


def test_pending_pod_of_missing_node_is_deleted():
    daemons = DaemonSetHarness(nodes=2)
    daemons.sync()
    daemons.remove(NODES, "n0", namespace="")
    daemons.sync()
    assert set(map(node_of, daemons.undeleted)) == {"n1"}


def test_failed_pod_is_replaced_with_backoff():
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    daemons.end(daemons.undeleted[0], "Failed")
    daemons.sync()
    assert daemons.undeleted == []
    assert daemons.events[-2][1] == "FailedDaemonPod"
    daemons.collect()
    daemons.sync()
    daemons.end(daemons.undeleted[0], "Failed")
    daemons.sync()
    assert len(daemons.undeleted) == 1, "it is left alone for a second"
    assert daemons.plan(KEY).requeue_after == timedelta(seconds=1)
    daemons.clock.advance(1)
    daemons.sync()
    assert daemons.undeleted == []


def test_succeeded_pod_is_replaced():
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    daemons.end(daemons.undeleted[0], "Succeeded")
    daemons.sync()
    assert daemons.undeleted == []
    assert ("Normal", "SucceededDaemonPod") in [event[:2] for event in daemons.events]


@pytest.mark.parametrize(
    ("strategy", "nodes", "missing", "surplus"),
    [
        (rolling(0, 1), 4, 1, 0),
        (rolling(0, "50%"), 4, 2, 0),
        (rolling(1, 0), 4, 0, 1),
        (rolling("50%", 0), 4, 0, 2),
    ],
)
def test_rolling_update_respects_limits(strategy, nodes, missing, surplus):
    daemons = DaemonSetHarness(nodes=nodes, updateStrategy=strategy)
    daemons.settle()
    daemons.release("a:2")
    assert daemons.settle() == (missing, surplus)
    assert set(daemons.images.values()) == {"a:2"}
    assert daemons.revisions == [1, 2]


def test_on_delete_waits_for_user():
    daemons = DaemonSetHarness(nodes=2, updateStrategy=ON_DELETE)
    daemons.settle()
    daemons.release("a:2")
    daemons.settle()
    assert set(daemons.images.values()) == {"a:1"}
    assert daemons.status.get("updatedNumberScheduled", 0) == 0
    daemons.remove(PODS, meta.name(daemons.undeleted[0]))
    daemons.settle()
    assert sorted(daemons.images.values()) == ["a:1", "a:2"]


def test_update_stops_at_unready_pods():
    daemons = DaemonSetHarness(nodes=3)
    daemons.settle()
    daemons.release("bad")
    daemons.settle(ready=False)
    assert sorted(daemons.images.values()) == ["a:1", "a:1", "bad"]


def test_rollback_renumbers_old_revision():
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    daemons.release("a:2")
    daemons.settle()
    daemons.release("a:1")
    daemons.settle()
    assert daemons.revisions == [2, 3]


def test_revisions_beyond_limit_are_deleted():
    daemons = DaemonSetHarness(nodes=1, revisionHistoryLimit=1)
    for number in range(1, 5):
        daemons.release(f"a:{number}")
        daemons.settle()
    assert daemons.revisions == [3, 4]


def test_revision_name_collision_is_counted():
    daemons = DaemonSetHarness(nodes=1)
    daemons.sync()
    (revision,) = daemons.all(CONTROLLER_REVISIONS)
    other = DaemonSetHarness(nodes=1)
    taken = {
        **revision,
        "metadata": {**revision["metadata"], "ownerReferences": [], "labels": {}},
        "data": {},
    }
    other.add(CONTROLLER_REVISIONS, taken)
    assert other.sync() == [("update", "daemonsets")]
    assert other.status["collisionCount"] == 1
    other.sync()
    assert len(other.all(CONTROLLER_REVISIONS)) == 2


def test_revision_data_is_encoded_as_in_go():
    daemons = DaemonSetHarness(nodes=1)
    daemons.sync()
    (revision,) = daemons.all(CONTROLLER_REVISIONS)
    data = revision["data"]
    assert orjson.dumps(data) == orjson.dumps(data, option=orjson.OPT_SORT_KEYS)


def test_duplicate_revisions_are_merged():
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    (revision,) = daemons.all(CONTROLLER_REVISIONS)
    twin = meta.with_metadata(revision, name="twin", uid="uid-twin")
    daemons.add(
        CONTROLLER_REVISIONS, {**meta.with_labels(twin, {"controller-revision-hash": "twin"}), "revision": 2}
    )
    daemons.settle()
    assert [meta.name(it) for it in daemons.all(CONTROLLER_REVISIONS)] == ["twin"]
    assert [meta.labels(pod)["controller-revision-hash"] for pod in daemons.undeleted] == ["twin"]


def test_empty_selector_is_refused():
    daemons = DaemonSetHarness(nodes=1, selector={})
    assert daemons.sync() == []
    assert daemons.events[0][1] == "SelectingAll"


def _keys(daemons, change):
    (watch,) = [watch for watch in DAEMON_SET.watches if watch.resource is NODES]
    return [*watch.keys(daemons.caches(), change)]


def test_node_maps_to_sets_that_start_or_end_there():
    daemons = DaemonSetHarness(nodes=1)
    node = daemons.all(NODES)[0]
    assert _keys(daemons, Change(None, node)) == [KEY]
    daemons.settle()
    assert _keys(daemons, Change(None, node)) == []
    assert _keys(daemons, Change(node, None)) == []
    assert _keys(daemons, Change(node, {**node, "status": {"conditions": []}})) == []
    tainted = {**node, "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
    assert _keys(daemons, Change(node, tainted)) == [KEY]
    daemons.remove(PODS, meta.name(daemons.undeleted[0]))
    assert _keys(daemons, Change(node, tainted)) == []
    assert _keys(daemons, Change(tainted, node)) == [KEY]
    assert _keys(daemons, Change(node, node)) == [], "what fits or not is the same"


def test_node_maps_to_sets_whose_labels_it_gets():
    daemons = DaemonSetHarness(nodes=1, template=template(nodeSelector={"disk": "ssd"}))
    node = daemons.all(NODES)[0]
    labelled = meta.with_labels(node, {"disk": "ssd"})
    assert _keys(daemons, Change(None, node)) == []
    assert _keys(daemons, Change(node, labelled)) == [KEY]


@pytest.mark.parametrize(("count", "keys"), [(1, [KEY]), (0, [])])
def test_node_with_a_pod_maps_to_sets_that_count_misscheduled_pods(count, keys):
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    daemons.put(DAEMON_SETS, {**daemons.set, "status": {"numberMisscheduled": count}})
    tainted = {**daemons.all(NODES)[0], "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    assert _keys(daemons, Change(None, tainted)) == keys


def test_absent_set_has_no_backoff():
    daemons = DaemonSetHarness(nodes=1)
    daemons.remove(DAEMON_SETS, "d")
    assert daemons.plan(KEY).actions == (Remember(None),)


def test_foreign_pods_are_adopted_before_any_is_created():
    daemons = DaemonSetHarness(nodes=2)
    labels = {"app": "d"}
    daemons.add(
        PODS,
        {
            "metadata": {"name": "orphan", "namespace": "default", "labels": labels},
            "spec": {"nodeName": "n0"},
        },
    )
    assert daemons.sync() == [("adopt", "pods")]
    daemons.sync()
    assert len(daemons.undeleted) == 2


def test_status_of_a_set_without_nodes_has_required_counts():
    daemons = DaemonSetHarness(nodes=0)
    daemons.sync()
    required = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
    assert daemons.status == {**dict.fromkeys(required, 0), "observedGeneration": 1}


def test_next_reconciliation_is_that_of_the_next_pod_that_becomes_available():
    daemons = DaemonSetHarness(nodes=2, minReadySeconds=30)
    daemons.sync()
    first, second = daemons.undeleted
    daemons.run(first)
    daemons.clock.advance(20)
    daemons.run(second)
    daemons.sync()
    assert daemons.plan(KEY).requeue_after == timedelta(seconds=10)
    daemons.clock.advance(15)
    assert daemons.plan(KEY).requeue_after == timedelta(seconds=15)
    daemons.clock.advance(15)
    daemons.sync()
    assert daemons.plan(KEY).requeue_after is None


def test_revisions_that_pods_have_are_not_deleted():
    daemons = DaemonSetHarness(nodes=1, revisionHistoryLimit=0, updateStrategy=ON_DELETE)
    daemons.settle()
    daemons.release("a:2")
    daemons.settle()
    assert daemons.revisions == [1, 2], "the old pod has the first one"
    daemons.remove(PODS, meta.name(daemons.undeleted[0]))
    daemons.settle()
    assert daemons.revisions == [2]


def test_default_limit_of_revisions_is_ten():
    daemons = DaemonSetHarness(nodes=1, revisionHistoryLimit=None)
    for number in range(1, 14):
        daemons.release(f"a:{number}")
        daemons.settle()
    assert daemons.revisions == [*range(3, 14)]


def test_hash_of_a_revision_without_label_is_its_name():
    assert hash_of({"metadata": {"name": "d-h"}}) == "d-h"
    assert hash_of({"metadata": {"name": "d-h", "labels": {"controller-revision-hash": "h"}}}) == "h"


def test_new_revision_has_no_empty_metadata():
    daemons = DaemonSetHarness(nodes=0)
    daemons.put(DAEMON_SETS, meta.with_metadata(daemons.set, annotations={}))
    daemons.sync()
    (revision,) = daemons.all(CONTROLLER_REVISIONS)
    assert "annotations" not in revision["metadata"]


def test_pods_of_a_merged_revision_that_have_its_hash_are_not_written():
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    (revision,) = daemons.all(CONTROLLER_REVISIONS)
    daemons.add(
        CONTROLLER_REVISIONS, {**meta.with_metadata(revision, name="twin", uid="uid-twin"), "revision": 2}
    )
    assert daemons.sync() == [("delete", "controllerrevisions")]


def test_terminated_deleting_pod_is_replaced():
    daemons = DaemonSetHarness(nodes=1)
    daemons.settle()
    daemons.end(daemons.undeleted[0], "Failed")
    ending = format_time(daemons.clock.now())
    (pod,) = daemons.all(PODS)
    daemons.put(PODS, meta.with_metadata(pod, deletionTimestamp=ending, finalizers=["x/y"]))
    daemons.sync()
    assert len(daemons.undeleted) == 1


def test_deleting_daemon_set_is_not_reconciled():
    daemons = DaemonSetHarness(nodes=1)
    daemons.put(DAEMON_SETS, meta.with_metadata(daemons.set, deletionTimestamp="2030-01-01T00:00:00Z"))
    assert daemons.sync() == []
    assert daemonset()["spec"]["updateStrategy"]["type"] == "RollingUpdate"
