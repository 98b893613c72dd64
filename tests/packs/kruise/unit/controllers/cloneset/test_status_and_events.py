"""CloneSet: replica counts, revisions, progress conditions and failure Events."""

import pytest

from mockube.apimachinery import conditions, meta, status
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS
from mockube.packs.kruise.kinds import CLONE_SETS
from tests.packs.kruise.support.clonesets import IN_PLACE, WEB, CloneSetHarness, template


def settled_clones(**spec):
    clones = CloneSetHarness(**spec)
    clones.settle()
    return clones


def progress(clones):
    condition = conditions.get(clones.set, "Progressing")
    return condition["status"], condition["reason"], condition["message"]


def test_complete_status():
    clones = settled_clones(replicas=2)
    revision = clones.names_of_revisions()[0]
    assert clones.status == {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "updatedReplicas": 2,
        "updatedReadyReplicas": 2,
        "updatedAvailableReplicas": 2,
        "expectedUpdatedReplicas": 2,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
        "labelSelector": "app=web",
    }


def test_ready_pod_is_not_yet_available():
    clones = settled_clones(replicas=2, minReadySeconds=30)
    assert clones.count("readyReplicas", "availableReplicas", "updatedAvailableReplicas") == [2, 0, 0]
    assert clones.plan_web().requeue_after.total_seconds() == 30
    clones.clock.advance(30)
    clones.settle()
    assert clones.count("readyReplicas", "availableReplicas", "updatedAvailableReplicas") == [2, 2, 2]


def test_update_completes_without_readiness():
    clones = settled_clones(replicas=1, updateStrategy=IN_PLACE)
    clones.roll()
    clones.round()
    clones.round()
    assert clones.status["currentRevision"] == clones.status["updateRevision"]
    assert clones.count("updatedReplicas", "updatedReadyReplicas") == [1, 0]


def test_revision_has_upstreams_content():
    clones = settled_clones(replicas=1)
    (revision,) = clones.all(CONTROLLER_REVISIONS)
    assert revision["revision"] == 1
    assert revision["data"] == {"spec": {"template": {**template(), "$patch": "replace"}}}
    assert meta.annotations(revision) == {"kruise.io/cloneset-volumeclaimtemplate-hash": ""}
    assert meta.labels(revision)["app"] == "web"


def test_foreign_revision_of_same_name_is_a_collision():
    clones = CloneSetHarness(replicas=1)
    (create, *_) = clones.plan_web().actions
    (body,) = create.bodies
    clones.add(
        CONTROLLER_REVISIONS,
        {**body, "metadata": {"name": meta.name(body), "namespace": "default"}, "data": {}},
    )
    clones.settle()
    assert clones.status["collisionCount"] == 1
    assert clones.status["updateRevision"] != meta.name(body)


def test_failed_creation_records_event():
    clones = CloneSetHarness(replicas=2)
    clones.add = lambda resource, tree: refuse(clones, resource, tree)
    clones.round()
    clones.round()
    assert clones.messages_of("FailedCreate")[0].startswith(
        "failed to create pod: pods is forbidden, pod: web-"
    )
    assert conditions.get(clones.set, "FailedScale")["message"] == "pods is forbidden"


def refuse(clones, resource, tree):
    if resource is PODS:
        raise status.Forbidden("pods is forbidden")
    return type(clones).add(clones, resource, tree)


def test_unchanged_status_is_not_written():
    clones = settled_clones(replicas=3, progressDeadlineSeconds=600)
    assert clones.plan_web().actions == ()
    assert clones.plan_web().last(None) == ()
    writes, _ = clones.reconcile(WEB)
    assert writes == []


# --- progress


def test_no_deadline_has_no_progressing_condition():
    assert conditions.of(settled_clones(replicas=1).set) == ()


def test_progress_until_completion():
    clones = CloneSetHarness(replicas=2, progressDeadlineSeconds=60)
    clones.round()
    assert progress(clones) == ("True", "CloneSetUpdated", "CloneSet is progressing")
    clones.settle()
    assert progress(clones) == ("True", "CloneSetAvailable", "CloneSet is available")


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({"paused": True}, ("True", "CloneSetPaused", "CloneSet is paused"), id="paused"),
        pytest.param(
            {"partition": 1},
            ("True", "ProgressPartitionAvailable", "CloneSet has been paused due to partition ready"),
            id="partition",
        ),
    ],
)
def test_rollout_may_be_paused_by_partition(strategy, expected):
    clones = settled_clones(replicas=2, progressDeadlineSeconds=60, updateStrategy=strategy)
    clones.roll()
    clones.settle()
    assert progress(clones) == expected


def test_stalled_rollout_exceeds_deadline():
    clones = settled_clones(replicas=2, progressDeadlineSeconds=60, updateStrategy=IN_PLACE)
    clones.roll()
    clones.round()
    clones.round()
    assert clones.plan_web().requeue_after.total_seconds() == 60
    clones.clock.advance(60)
    clones.round()
    revision = clones.status["updateRevision"]
    late = ("False", "ProgressDeadlineExceeded", f"CloneSet revision {revision} has timed out progressing")
    assert progress(clones) == late
    clones.clock.advance(60)
    clones.round()
    assert progress(clones) == late
    clones.roll("a:3")
    clones.round()
    assert progress(clones)[1] == "CloneSetUpdated"
    clones.settle()
    assert progress(clones)[1] == "CloneSetAvailable"


def test_progressing_rollout_does_not_exceed_deadline():
    clones = settled_clones(replicas=2, progressDeadlineSeconds=60, updateStrategy=IN_PLACE)
    clones.roll()
    clones.round()
    clones.round()
    clones.clock.advance(59)
    for _ in range(3):
        clones.run_all()
        clones.round()
    clones.clock.advance(59)
    clones.round()
    assert progress(clones)[1] == "CloneSetUpdated"


def test_repeated_failure_message_is_not_written():
    clones = settled_clones(replicas=2, updateStrategy={"type": "InPlaceOnly"})
    clones.roll("a:2", terminationGracePeriodSeconds=1)
    clones.settle()
    version = meta.resource_version(clones.get(CLONE_SETS, "web"))
    clones.round()
    assert meta.resource_version(clones.get(CLONE_SETS, "web")) == version
