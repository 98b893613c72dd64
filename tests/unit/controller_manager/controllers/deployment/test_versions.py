"""Deployment: names, revision numbers, history and cleanup of ReplicaSets."""

import pytest

from mockube.apimachinery import meta, status
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import DEPLOYMENTS, REPLICA_SETS
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.deployment.state import DeploymentView, new_set_name
from mockube.controller_manager.workloads.templates import template_hash
from tests.support.controllers.deployments import (
    RECREATE,
    DeploymentHarness,
    deployment,
    replicaset,
    template,
)

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"


@pytest.fixture
def cluster():
    return DeploymentHarness()


def annotate(cluster, **annotations):
    named = {key.replace("__", "/").replace("_", "-"): text for key, text in annotations.items()}
    changed = meta.with_annotations(cluster.web, named)
    cluster.put(DEPLOYMENTS, meta.with_metadata(changed, generation=meta.generation(changed) + 1))


def test_new_replica_set_has_template_and_hash(cluster):
    cluster.add(
        DEPLOYMENTS,
        meta.with_annotations(
            deployment(minReadySeconds=5),
            {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
        ),
    )
    cluster.roll_on()
    (made,) = cluster.sets
    hashed = template_hash(template(), None)
    assert meta.name(made) == f"web-{hashed}"
    assert meta.labels(made) == {"app": "web", "pod-template-hash": hashed}
    assert meta.annotations(made) == {
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
        REVISION: "1",
        "note": "n",
    }
    assert meta.is_controlled_by(made, cluster.web)
    assert made["spec"] == {
        "replicas": 3,
        "minReadySeconds": 5,
        "selector": {"matchLabels": {"app": "web", "pod-template-hash": hashed}},
        "template": template(**{"pod-template-hash": hashed}),
    }
    assert meta.annotations(cluster.web)[REVISION] == "1"


def test_match_expressions_of_selector_are_kept(cluster):
    expressions = [{"key": "app", "operator": "Exists"}]
    cluster.deploy(selector={"matchExpressions": expressions})
    cluster.roll_on()
    selector = cluster.sets[0]["spec"]["selector"]
    assert selector["matchExpressions"] == expressions
    assert [*selector["matchLabels"]] == ["pod-template-hash"]


def test_long_name_is_truncated_before_hash():
    view = DeploymentView({**deployment(), "metadata": {"name": "n" * 253}})
    assert new_set_name(view, "12345") == f"{'n' * 247}-12345"


def test_hash_collision_is_counted_and_renames(cluster):
    taken = f"web-{template_hash(template(), None)}"
    cluster.add(REPLICA_SETS, replicaset(name=taken, template=template("other:1")))
    cluster.deploy()
    cluster.roll_on()
    assert cluster.status["collisionCount"] == 1
    cluster.settle()
    (made,) = (it for it in cluster.sets if meta.name(it) != taken)
    assert meta.name(made) == f"web-{template_hash(template(), 1)}"
    assert cluster.status["collisionCount"] == 1
    assert cluster.status["availableReplicas"] == 3


def test_oldest_of_equal_sets_is_the_new_one(cluster):
    cluster.deploy(replicas=2).settle()
    first = meta.name(cluster.sets[0])
    twin = meta.with_labels(replicaset(name="twin", replicas=1), {"app": "web"})
    cluster.clock.advance(60)
    cluster.add(REPLICA_SETS, twin)
    cluster.settle()
    assert {meta.name(it): it["spec"]["replicas"] for it in cluster.sets} == {first: 2, "twin": 0}


# --- revisions


def test_revision_number_increases_and_reused_set_keeps_history(cluster):
    cluster.deploy(replicas=1).settle()
    for image in ("a:2", "a:1", "a:2", "a:1"):
        cluster.release(image)
        cluster.settle()
    assert cluster.revisions == {"a:1": "5", "a:2": "4"}
    assert meta.annotations(cluster.set_of("a:1"))[HISTORY] == "1,3"
    assert meta.annotations(cluster.set_of("a:2"))[HISTORY] == "2"
    assert meta.annotations(cluster.web)[REVISION] == "5"


def test_revision_history_annotation_is_limited(cluster):
    cluster.deploy(replicas=1).settle()
    cluster.release("a:2")
    cluster.settle()
    old = cluster.set_of("a:1")
    long = ",".join(str(number) for number in range(1000, 1400))
    cluster.put(REPLICA_SETS, meta.with_annotations(old, {HISTORY: long}))
    cluster.release("a:1")
    cluster.settle()
    history = meta.annotations(cluster.set_of("a:1"))[HISTORY]
    assert history == long[len("1000,") :] + ",1"
    assert len(history) <= 2000


def test_revision_number_never_decreases(cluster):
    cluster.deploy(replicas=1, revisionHistoryLimit=0).settle()
    for image in ("a:2", "a:3"):
        cluster.release(image)
        cluster.settle()
    assert cluster.revisions == {"a:3": "3"}
    annotate(cluster, note="1")
    cluster.settle()
    assert cluster.revisions == {"a:3": "3"}


def test_invalid_revision_number_is_ignored(cluster):
    cluster.deploy(replicas=1).settle()
    cluster.put(REPLICA_SETS, meta.with_annotations(cluster.sets[0], {REVISION: "x"}))
    annotate(cluster, note="1")
    cluster.settle()
    assert meta.annotations(cluster.sets[0])[REVISION] == "x"


def test_annotations_are_copied_to_new_set_only(cluster):
    cluster.deploy(replicas=1).settle()
    cluster.release("a:2")
    annotate(cluster, kubernetes_io__change_cause="second")
    cluster.settle()
    causes = [meta.annotations(it).get("kubernetes-io/change-cause") for it in cluster.sets]
    assert causes == [None, "second"]


def test_annotation_change_costs_two_writes(cluster):
    cluster.deploy().settle()
    cluster.done.clear()
    annotate(cluster, note="1")
    cluster.settle()
    assert [(verb, resource) for verb, resource, _ in cluster.done] == [
        ("update", REPLICA_SETS),
        ("update", DEPLOYMENTS),
    ]


def test_min_ready_seconds_is_copied_to_sets(cluster):
    cluster.deploy().settle()
    cluster.set("minReadySeconds", 7)
    cluster.settle()
    assert cluster.sets[0]["spec"]["minReadySeconds"] == 7


# --- history


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, {"a:4"}),
        (1, {"a:3", "a:4"}),
        (10, {"a:1", "a:2", "a:3", "a:4"}),
        (2**31 - 1, {"a:1", "a:2", "a:3", "a:4"}),
    ],
)
def test_oldest_sets_beyond_history_limit_are_deleted(cluster, limit, expected):
    cluster.deploy(replicas=1, revisionHistoryLimit=limit).settle()
    for image in ("a:2", "a:3", "a:4"):
        cluster.release(image)
        cluster.settle()
    assert cluster.sizes.keys() == expected


def test_reused_set_is_not_the_oldest(cluster):
    cluster.deploy(replicas=1, revisionHistoryLimit=1).settle()
    for image in ("a:2", "a:1", "a:3"):
        cluster.release(image)
        cluster.settle()
    assert cluster.sizes.keys() == {"a:1", "a:3"}


@pytest.mark.parametrize("strategy", [RECREATE, deployment()["spec"]["strategy"]], ids=lambda it: it["type"])
def test_sets_are_not_deleted_before_rollout_completes(cluster, strategy):
    cluster.deploy(replicas=2, revisionHistoryLimit=0, strategy=strategy).settle()
    cluster.release("a:2")
    cluster.settle(machine=False)
    assert "a:1" in cluster.sizes


def test_paused_deployment_deletes_old_sets(cluster):
    cluster.deploy(replicas=1).settle()
    cluster.release("a:2")
    cluster.settle()
    cluster.pause()
    cluster.set("revisionHistoryLimit", 0)
    cluster.settle()
    assert cluster.sizes.keys() == {"a:2"}


@pytest.mark.parametrize(
    ("field", "value"),
    [("replicas", 1), ("observedGeneration", 0)],
    ids=["still has pods", "was not looked at"],
)
def test_active_old_set_is_kept(cluster, field, value):
    cluster.deploy(replicas=1).settle()
    cluster.release("a:2")
    cluster.settle()
    name = meta.name(cluster.set_of("a:1"))
    cluster.change(REPLICA_SETS, name, ("status", field), value)
    cluster.set("revisionHistoryLimit", 0)
    for _ in range(4):
        cluster.roll_on()
    assert "a:1" in cluster.sizes


# --- failures


def made_with(cluster, error):
    for action in cluster.plan_of(DEPLOYMENT).last(error):
        cluster._update(action)


def test_failed_set_creation_sets_condition(cluster):
    cluster.deploy()
    (create,) = cluster.plan_of(DEPLOYMENT).actions
    error = status.forbidden(REPLICA_SETS.group_resource, "", "exceeded quota: q")
    made_with(cluster, error)
    (condition,) = cluster.status["conditions"]
    text = f'Failed to create new replica set "{meta.name(create.bodies[0])}": {error}'
    assert (condition["type"], condition["status"]) == ("Progressing", "False")
    assert (condition["reason"], condition["message"]) == ("ReplicaSetCreateError", text)
    reason, message = create.event.on_failure
    assert (reason, message.format(name=meta.name(create.bodies[0]), error=error)) == (
        "ReplicaSetCreateError",
        text,
    )


def test_failed_set_creation_without_deadline_records_event_only(cluster):
    cluster.deploy(progressDeadlineSeconds=None)
    made_with(cluster, status.internal_error("no"))
    assert cluster.status == {}


def test_existing_set_is_no_failure(cluster):
    cluster.deploy()
    made_with(cluster, status.already_exists(REPLICA_SETS.group_resource, "web-1"))
    assert cluster.status == {}


def test_deleting_deployment_updates_status_only(cluster):
    cluster.deploy(replicas=2).settle()
    held = meta.with_finalizer(cluster.web, "foregroundDeletion")
    cluster.put(DEPLOYMENTS, meta.with_metadata(held, deletionTimestamp=format_time(cluster.clock.now())))
    cluster.release("a:2")
    cluster.settle()
    assert cluster.sizes == {"a:1": 2}
    assert cluster.status["observedGeneration"] == 2
    assert "updatedReplicas" not in cluster.status
