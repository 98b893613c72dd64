"""The condition Progressing of a Deployment, its deadline, and when a status is written, as tables."""

from datetime import timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.deployment import revision, status
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT, reconcile
from mockube.controller_manager.controllers.deployment.state import DeploymentView, ReplicaSetView, state_of
from tests.support.controllers.deployments import RECREATE, WEB, deployment, replicaset, template
from tests.support.controllers.fake_caches import FakeCaches

NOW = SteppedClock().now()
SECOND = timedelta(seconds=1)
WHOLE = {"updatedReplicas": 3, "replicas": 3, "availableReplicas": 3, "observedGeneration": 2}


def view(present=None, *, generation=2, **spec):
    tree = deployment(**spec)
    tree["metadata"]["generation"] = generation
    return DeploymentView({**tree, "status": present or {}})


def progressing(reason, since=NOW, outcome="True"):
    time = format_time(since)
    return {
        "type": "Progressing",
        "status": outcome,
        "reason": reason,
        "lastUpdateTime": time,
        "lastTransitionTime": time,
    }


def reason_of(conditions):
    return next((each["reason"] for each in conditions if each["type"] == "Progressing"), None)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (WHOLE, True),
        (WHOLE | {"observedGeneration": 3}, True),
        (WHOLE | {"observedGeneration": 1}, False),
        (WHOLE | {"updatedReplicas": 2}, False),
        (WHOLE | {"replicas": 4}, False),
        (WHOLE | {"availableReplicas": 2}, False),
        ({}, False),
    ],
)
def test_deployment_is_complete_with_all_pods_of_its_generation(counts, expected):
    assert status.is_complete(view(), counts) is expected


OLD = {"replicas": 3, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"updatedReplicas": 2, "replicas": 4}, True),
        ({"replicas": 2}, True),
        ({"readyReplicas": 2}, True),
        ({"availableReplicas": 2}, True),
        ({"replicas": 4}, False),
        ({"readyReplicas": 0, "availableReplicas": 0}, False),
    ],
)
def test_more_pods_that_are_new_ready_or_available_are_progress(change, expected):
    found = status._with_progress(view(OLD), None, OLD | change, [progressing("NewReplicaSetCreated")], NOW)
    assert (reason_of(found) == "ReplicaSetUpdated") is expected


@pytest.mark.parametrize(
    ("spec", "present", "counts", "expected"),
    [
        ({"progressDeadlineSeconds": None}, [progressing("ReplicaSetUpdated")], OLD, None),
        ({}, [], OLD, None),
        ({}, [progressing("NewReplicaSetCreated", NOW - 601 * SECOND)], OLD, "ProgressDeadlineExceeded"),
        ({}, [progressing("NewReplicaSetCreated", NOW - 600 * SECOND)], OLD, "NewReplicaSetCreated"),
        ({}, [progressing("ProgressDeadlineExceeded", NOW, "False")], OLD, "ProgressDeadlineExceeded"),
        ({}, [progressing("NewReplicaSetAvailable", NOW - 999 * SECOND)], OLD, "NewReplicaSetAvailable"),
        ({}, [progressing("NewReplicaSetCreated")], WHOLE, "NewReplicaSetAvailable"),
        ({}, [progressing("NewReplicaSetAvailable")], WHOLE, "NewReplicaSetAvailable"),
    ],
    ids=[
        "no deadline",
        "no condition",
        "late",
        "on time",
        "stays late",
        "earlier rollout",
        "complete",
        "still complete",
    ],
)
def test_progress_has_a_reason(spec, present, counts, expected):
    assert reason_of(status._with_progress(view(OLD, **spec), None, counts, present, NOW)) == expected


def test_rollout_that_was_complete_stays_so_while_no_old_pods_exist():
    done = [progressing("NewReplicaSetAvailable", NOW - SECOND)]
    fewer = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    before = fewer | {"readyReplicas": 0, "availableReplicas": 1}
    assert status._with_progress(view(before), None, fewer, done, NOW) is done
    with_old = fewer | {"replicas": 3}
    assert reason_of(status._with_progress(view(before), None, with_old, done, NOW)) == "ReplicaSetUpdated"


@pytest.mark.parametrize(
    ("spec", "conditions", "counts", "expected"),
    [
        ({}, [progressing("ReplicaSetUpdated", NOW - 100 * SECOND)], OLD, 501),
        ({}, [progressing("ReplicaSetUpdated", NOW - 900 * SECOND)], OLD, 1),
        ({}, [progressing("ReplicaSetUpdated")], WHOLE, None),
        ({}, [progressing("ProgressDeadlineExceeded")], OLD, None),
        ({}, [], OLD, None),
        ({}, None, OLD, None),
        ({"progressDeadlineSeconds": None}, [progressing("ReplicaSetUpdated")], OLD, None),
        ({"progressDeadlineSeconds": 2**31 - 1}, [progressing("ReplicaSetUpdated")], OLD, None),
    ],
)
def test_next_check_is_when_the_deadline_has_passed(spec, conditions, counts, expected):
    found = status.next_check(view(**spec), {**counts, "conditions": conditions}, NOW)
    assert found == (None if expected is None else timedelta(seconds=expected))


@pytest.mark.parametrize(
    ("spec", "present", "expected"),
    [
        ({"paused": True}, "ReplicaSetUpdated", "DeploymentPaused"),
        ({"paused": True}, "DeploymentPaused", "DeploymentPaused"),
        ({}, "DeploymentPaused", "DeploymentResumed"),
        ({}, "ReplicaSetUpdated", "ReplicaSetUpdated"),
        ({"paused": True}, "ProgressDeadlineExceeded", "ProgressDeadlineExceeded"),
        ({"paused": True, "progressDeadlineSeconds": None}, "ReplicaSetUpdated", "ReplicaSetUpdated"),
        ({"paused": True}, None, "DeploymentPaused"),
    ],
)
def test_pause_is_a_reason_of_progress(spec, present, expected):
    conditions = [] if present is None else [progressing(present)]
    assert reason_of(status.with_pause_reason(view(**spec), conditions, NOW)) == expected


SET = ReplicaSetView.of(replicaset("web-1"))


@pytest.mark.parametrize(
    ("spec", "present", "expected"),
    [
        ({}, [], "FoundNewReplicaSet"),
        ({}, [progressing("ReplicaSetUpdated")], "ReplicaSetUpdated"),
        ({"progressDeadlineSeconds": None}, [], None),
    ],
)
def test_found_set_is_a_reason_where_there_is_none(spec, present, expected):
    assert reason_of(status.with_found_new_replica_set(view(**spec), SET, present, NOW)) == expected


@pytest.mark.parametrize(
    ("deadline", "created", "failed"),
    [(600, "NewReplicaSetCreated", "ReplicaSetCreateError"), (None, None, None)],
)
def test_created_set_is_a_reason_with_a_deadline(deadline, created, failed):
    subject = view(progressDeadlineSeconds=deadline)
    assert reason_of(status.with_created_new_replica_set(subject, "web-1", [], NOW)) == created
    assert reason_of(status.with_replica_set_create_error(subject, "web-1", "no", NOW)) == failed


def test_condition_of_the_same_status_keeps_its_transition():
    undated = {"type": "Progressing", "status": "True", "reason": "NewReplicaSetCreated"}
    early = progressing("NewReplicaSetCreated", NOW - 9 * SECOND)
    for present, expected in ((undated, NOW), (early, NOW - 9 * SECOND), (early | {"status": "False"}, NOW)):
        (found,) = status.with_pause_reason(
            view(), [present | {"reason": "DeploymentPaused", "status": present["status"]}], NOW
        )
        assert found["status"] == "Unknown"
        (found,) = status._replace_condition([present], progressing("ReplicaSetUpdated"))
        assert found["lastTransitionTime"] == format_time(expected)
        assert found["lastUpdateTime"] == format_time(NOW)


@pytest.mark.parametrize(
    ("present", "new", "number", "written"),
    [
        ({"replicas": 3}, {"replicas": 3}, "", False),
        ({"replicas": 3, "conditions": []}, {"replicas": 3, "readyReplicas": 0}, "", False),
        ({"replicas": 3}, {"replicas": 2}, "", True),
        ({"replicas": 3}, {"replicas": 3}, "7", False),
        ({"replicas": 3}, {"replicas": 3}, "8", True),
    ],
)
def test_status_is_written_if_it_or_the_revision_differs(present, new, number, written):
    subject = view(present).object
    subject["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "7"}
    assert bool(status.write_status(DeploymentView(subject), new, number)) is written


# --- the ReplicaSets of a Deployment


@pytest.mark.parametrize(
    ("spec", "counts", "expected"),
    [
        ({"replicas": 0}, {"observedGeneration": 1}, True),
        ({"replicas": 1}, {"observedGeneration": 1}, False),
        ({"replicas": 0}, {"observedGeneration": 1, "replicas": 1}, False),
        ({"replicas": 0}, {}, False),
    ],
)
def test_old_set_without_pods_is_deleted(spec, counts, expected):
    tree = replicaset("web-1", **spec)
    tree["metadata"]["generation"] = 1
    old = {**tree, "status": counts}
    subject = deployment(revisionHistoryLimit=0, template=template("a:2"))
    state = state_of(FakeCaches({REPLICA_SETS: [old]}, DEPLOYMENT.indexes), subject, [old])
    assert bool(revision.replica_sets_to_delete(state)) is expected
    ending = {**old, "metadata": {**old["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    state = state_of(FakeCaches({REPLICA_SETS: [ending]}, DEPLOYMENT.indexes), subject, [ending])
    assert not revision.replica_sets_to_delete(state)


def test_annotations_of_a_deployment_that_are_its_own_are_not_copied():
    own = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "deployment.kubernetes.io/revision": "7",
        "deployment.kubernetes.io/revision-history": "1,2",
        "deployment.kubernetes.io/desired-replicas": "9",
        "deployment.kubernetes.io/max-replicas": "9",
        "deprecated.deployment.rollback.to": "1",
    }
    subject = deployment()
    subject["metadata"]["annotations"] = {**own, "note": "x"}
    found = revision.new_replica_set(DeploymentView(subject), "h", 3, 8)["metadata"]["annotations"]
    assert found == {
        "note": "x",
        "deployment.kubernetes.io/revision": "8",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }


def test_history_keeps_one_revision_however_long_it_is():
    assert revision._add_to_history("", "1") == "1"
    assert revision._add_to_history("1,2", "3") == "1,2,3"
    assert revision._add_to_history("1" * 1999, "2") == "2"
    assert revision._add_to_history("1" * 1998, "2") == "1" * 1998 + ",2"
    assert revision._add_to_history("1", "2" * 3000) == "2" * 3000


def test_absent_deployment_is_ignored():
    assert not reconcile(FakeCaches({}), WEB, NOW).actions


def owner_of(kind, name, uid):
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}]


@pytest.mark.parametrize(
    ("owner", "sets", "expected"),
    [
        (owner_of("ReplicaSet", "web-1", "uid-rs"), True, True),
        (owner_of("ReplicaSet", "web-1", "former"), True, False),
        (owner_of("ReplicaSet", "web-1", "uid-rs"), False, False),
        ([], True, False),
    ],
)
def test_pod_of_a_set_that_exists_concerns_its_deployment(owner, sets, expected):
    subject = deployment(strategy=RECREATE)
    tree = replicaset("web-1")
    tree["metadata"] |= {"uid": "uid-rs", "ownerReferences": owner_of("Deployment", "web", "u")}
    pod = PODS.view({"metadata": {"name": "p", "namespace": "default", "ownerReferences": owner}, "spec": {}})
    caches = FakeCaches({DEPLOYMENTS: [subject], REPLICA_SETS: [tree] if sets else []})
    watch = DEPLOYMENT.watches[2]
    assert [*watch.keys(caches, Change(pod, None))] == ([WEB] if expected else [])
    assert [*watch.keys(FakeCaches({REPLICA_SETS: [tree]}), Change(pod, None))] == []
