"""CloneSet: recreate and in-place updates under partition, pause and limits, over several reconciliations."""

import pytest

from mockube.apimachinery import conditions, meta
from mockube.client.kinds import PODS
from tests.packs.kruise.support.clonesets import IN_PLACE, WEB, CloneSetHarness, claim_template, template

HOOK = {"inPlaceUpdate": {"labelsHandler": {"hold": "true"}}}
STATE = "apps.kruise.io/inplace-update-state"
GRACE = "apps.kruise.io/inplace-update-grace"


def settled_clones(**spec):
    clones = CloneSetHarness(**spec)
    clones.settle()
    clones.events.clear()
    return clones


def readiness_gate(clones, name):
    condition = conditions.get(clones.get(PODS, name), "InPlaceUpdateReady")
    return condition["status"], condition.get("reason")


# --- recreated


def test_outdated_pod_is_marked_deleted_and_recreated():
    clones = settled_clones(replicas=3)
    clones.roll()
    ((verb, name),) = clones.round()
    assert verb == "patch"
    assert meta.labels(clones.get(PODS, name))["apps.kruise.io/specified-delete"] == "true"
    revision = clones.status["updateRevision"]
    assert clones.messages_of("SuccessfulUpdatePodReCreate") == [
        f"successfully patch pod {name} specified-delete for update(revision {revision})"
    ]
    assert clones.round() == [("delete", name)]
    assert [verb for verb, _ in clones.round()] == ["create"]
    clones.settle()
    assert clones.images == ["a:2"] * 3


def test_partition_is_respected():
    clones = settled_clones(replicas=5, updateStrategy={"partition": 3, "maxUnavailable": 1})
    before = clones.status["currentRevision"]
    clones.roll()
    clones.settle()
    assert clones.images == ["a:1"] * 3 + ["a:2"] * 2
    assert clones.count("expectedUpdatedReplicas", "updatedReplicas") == [2, 2]
    assert clones.status["currentRevision"] == before != clones.status["updateRevision"]


def test_lost_pod_is_recreated_with_its_revision():
    clones = settled_clones(replicas=4, updateStrategy={"partition": 2})
    clones.roll()
    clones.settle()
    for pod in clones.pods:
        clones.lose(meta.name(pod))
        clones.settle()
        assert clones.images == ["a:1", "a:1", "a:2", "a:2"]


def test_removed_partition_updates_remaining_pods():
    clones = settled_clones(replicas=4, updateStrategy={"partition": "50%"})
    clones.roll()
    clones.settle()
    clones.strategy(partition=0)
    clones.settle()
    assert clones.images == ["a:2"] * 4
    assert clones.status["currentRevision"] == clones.status["updateRevision"]


def test_paused_set_scales_without_updating():
    clones = settled_clones(replicas=2, updateStrategy={"paused": True})
    clones.roll()
    clones.scale(3)
    clones.settle()
    assert clones.images == ["a:1", "a:1", "a:2"]


def test_pods_of_set_on_delete_are_replaced_when_others_delete_them():
    clones = settled_clones(replicas=3, updateStrategy={"type": "OnDelete"})
    clones.roll()
    clones.settle()
    assert clones.images == ["a:1"] * 3
    clones.lose(meta.name(clones.pods[0]))
    clones.settle()
    assert clones.images == ["a:1", "a:1", "a:2"]


def test_surge_pods_are_created_first():
    clones = settled_clones(replicas=3, updateStrategy={"maxUnavailable": 0, "maxSurge": 1})
    clones.roll()
    assert [verb for verb, _ in clones.round()] == ["create"]
    clones.settle()
    assert (clones.images, clones.count("replicas")) == (["a:2"] * 3, [3])


def test_rollback_reuses_old_revision():
    clones = settled_clones(replicas=2)
    clones.roll("a:2")
    clones.settle()
    clones.roll("a:1")
    clones.settle()
    assert len(clones.names_of_revisions()) == 2
    assert clones.images == ["a:1", "a:1"]


# --- in place


def test_image_is_updated_in_place():
    clones = settled_clones(replicas=2, updateStrategy=IN_PLACE)
    before = {meta.name(pod): meta.uid(pod) for pod in clones.pods}
    clones.roll()
    assert [verb for verb, _ in clones.round()] == ["patch", "patch"], "its gate, and itself"
    ((name, pod),) = [
        (meta.name(it), it) for it in clones.pods if it["spec"]["containers"][0]["image"] == "a:2"
    ]
    assert readiness_gate(clones, name) == ("False", "StartInPlaceUpdate")
    assert conditions.is_false(pod, "Ready")
    assert meta.annotations(pod)[STATE] == (
        f'{{"revision":"{clones.status["updateRevision"]}","updateTimestamp":"2030-01-01T00:00:00Z",'
        '"lastContainerStatuses":{"c":{"imageID":"id-a:1"}},"updateImages":true,'
        '"containerBatchesRecord":[{"timestamp":"2030-01-01T00:00:00Z","containers":["c"]}]}'
    )
    assert clones.round() == [], "nothing before its container runs anew"
    clones.run(name)
    clones.round()
    assert readiness_gate(clones, name) == ("True", None)
    clones.settle()
    assert {meta.name(pod): meta.uid(pod) for pod in clones.pods} == before
    assert (clones.images, clones.states) == (["a:2", "a:2"], ["Normal", "Normal"])
    revision = clones.status["updateRevision"]
    assert {*clones.messages_of("SuccessfulUpdatePodInPlace")} == {
        f"successfully update pod {it} in-place(revision {revision})" for it in before
    }


def test_gate_closed_before_failed_update_stays_closed():
    clones = settled_clones(replicas=1, updateStrategy=IN_PLACE)
    (name,) = clones.pod_names
    clones.roll()
    clones.begin(WEB, 2)
    clones.run_all()
    assert (readiness_gate(clones, name), clones.images) == (("False", "StartInPlaceUpdate"), ["a:1"])
    assert clones.round() == [("patch", name)]
    assert (readiness_gate(clones, name), clones.images) == (("False", "StartInPlaceUpdate"), ["a:2"])
    clones.settle()
    assert readiness_gate(clones, name) == ("True", None)


def test_gate_closed_without_update_opens():
    clones = settled_clones(replicas=1, updateStrategy=IN_PLACE)
    (name,) = clones.pod_names
    clones.roll()
    clones.begin(WEB, 2)
    clones.strategy(**IN_PLACE, paused=True)
    clones.settle()
    assert (readiness_gate(clones, name), clones.images) == (("True", None), ["a:1"])


def test_percentage_partition_updates_at_least_one():
    clones = settled_clones(replicas=4, updateStrategy={**IN_PLACE, "partition": "99%"})
    clones.roll()
    clones.settle()
    assert clones.images == ["a:1"] * 3 + ["a:2"]
    assert clones.count("expectedUpdatedReplicas", "updatedReadyReplicas") == [1, 1]


def test_labels_and_annotations_are_updated_in_place():
    clones = settled_clones(replicas=2, updateStrategy=IN_PLACE, template=template(labels={"old": "1"}))
    names = clones.pod_names
    clones.roll("a:1", labels={"new": "1"}, annotations={"note": "x"})
    clones.settle()
    assert clones.pod_names == names
    for pod in clones.pods:
        assert meta.labels(pod)["new"] == "1"
        assert "old" not in meta.labels(pod)
        assert meta.annotations(pod)["note"] == "x"
        assert conditions.is_true(pod, "Ready")


def test_unsupported_in_place_change_recreates_pods():
    clones = settled_clones(replicas=2, updateStrategy=IN_PLACE)
    names = clones.pod_names
    clones.roll("a:2", terminationGracePeriodSeconds=5)
    clones.settle()
    assert not {*names} & {*clones.pod_names}
    assert clones.images == ["a:2"] * 2


def test_unsupported_change_of_in_place_only_set_keeps_pods():
    clones = settled_clones(replicas=2, updateStrategy={"type": "InPlaceOnly"})
    clones.roll("a:2", terminationGracePeriodSeconds=5)
    assert clones.round() == []
    name = clones.status["conditions"][0]["message"].split()[2]
    assert name in clones.pod_names
    assert clones.status["conditions"][0] == {
        "type": "FailedUpdate",
        "status": "True",
        "message": f"find Pod {name} update strategy is InPlaceOnly but can not update in-place",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    clones.settle()
    assert clones.images == ["a:1", "a:1"]


@pytest.mark.parametrize(("kind", "is_kept"), [("InPlaceIfPossible", False), ("InPlaceOnly", True)])
def test_changed_claim_templates_recreate_pods(kind, is_kept):
    clones = settled_clones(
        replicas=1, updateStrategy={"type": kind}, volumeClaimTemplates=[claim_template()]
    )
    names = clones.pod_names
    clones.change_spec("volumeClaimTemplates", to=[claim_template(size="2Gi")])
    clones.settle()
    assert clones.pod_names == names, "claims alone are no revision"
    clones.roll()
    clones.settle()
    assert (clones.pod_names == names) is is_kept


def test_grace_period_precedes_update():
    strategy = {**IN_PLACE, "inPlaceUpdateStrategy": {"gracePeriodSeconds": 10}}
    clones = settled_clones(replicas=1, updateStrategy=strategy)
    (name,) = clones.pod_names
    clones.roll()
    clones.round()
    assert readiness_gate(clones, name) == ("False", "StartInPlaceUpdate")
    assert clones.images == ["a:1"]
    assert GRACE in meta.annotations(clones.get(PODS, name))
    clones.clock.advance(4)
    clones.run_all()
    assert clones.plan_web().requeue_after.total_seconds() == 6
    clones.clock.advance(6)
    clones.round()
    assert clones.images == ["a:2"]
    clones.settle()
    assert GRACE not in meta.annotations(clones.get(PODS, name))
    assert conditions.is_true(clones.get(PODS, name), "Ready")
    assert clones.states == ["Normal"]


def test_third_revision_waits_for_grace_of_second():
    strategy = {**IN_PLACE, "inPlaceUpdateStrategy": {"gracePeriodSeconds": 10}}
    clones = settled_clones(replicas=1, updateStrategy=strategy)
    clones.roll("a:2")
    clones.settle()
    clones.roll("a:3")
    clones.settle()
    assert clones.images == ["a:1"]
    for _ in range(3):
        clones.clock.advance(10)
        clones.settle()
    assert clones.images == ["a:3"]


def test_hooked_pod_is_prepared_and_checked():
    clones = settled_clones(
        replicas=1, updateStrategy=IN_PLACE, lifecycle=HOOK, template=template(labels={"hold": "true"})
    )
    (name,) = clones.pod_names
    clones.roll("a:2", labels={"hold": "true"})
    clones.settle()
    assert (clones.states, clones.images) == (["PreparingUpdate"], ["a:1"])
    clones.label(name, hold="no")
    clones.settle()
    assert (clones.states, clones.images) == (["Updated"], ["a:2"])
    assert clones.count("readyReplicas", "availableReplicas") == [1, 0]
    clones.label(name, hold="true")
    clones.settle()
    assert (clones.states, clones.count("availableReplicas")) == (["Normal"], [1])


def test_rollback_returns_prepared_pod_to_normal():
    clones = settled_clones(
        replicas=1, updateStrategy=IN_PLACE, lifecycle=HOOK, template=template(labels={"hold": "true"})
    )
    clones.roll("a:2", labels={"hold": "true"})
    clones.settle()
    clones.roll("a:1", labels={"hold": "true"})
    clones.settle()
    assert (clones.states, clones.images) == (["Normal"], ["a:1"])


def test_updated_pod_without_hook_label_waits_for_next_update():
    clones = settled_clones(
        replicas=1, updateStrategy=IN_PLACE, lifecycle=HOOK, template=template(labels={"hold": "true"})
    )
    (name,) = clones.pod_names
    clones.roll("a:2", labels={"hold": "true"})
    clones.settle()
    clones.label(name, hold="no")
    clones.settle()
    clones.roll("a:3", labels={"hold": "true"})
    clones.settle()
    assert clones.states == ["PreparingUpdate"]
    assert meta.labels(clones.get(PODS, name))["hold"] == "true"


def test_pod_preparing_update_is_not_ready_if_hook_marks_it():
    hook = {"inPlaceUpdate": {"labelsHandler": {"hold": "true"}, "markPodNotReady": True}}
    clones = settled_clones(
        replicas=1, updateStrategy=IN_PLACE, lifecycle=hook, template=template(labels={"hold": "true"})
    )
    (name,) = clones.pod_names
    assert is_ready(clones, name)
    clones.roll(labels={"hold": "true"})
    clones.settle()
    assert (clones.states, is_ready(clones, name)) == (["PreparingUpdate"], False)
    clones.label(name, hold="no")
    clones.settle()
    assert (clones.images, clones.states, is_ready(clones, name)) == (["a:2"], ["Updated"], True)


def is_ready(clones, name):
    return conditions.is_true(clones.get(PODS, name), "Ready")


# --- which pods, and how many


def test_unready_pod_is_updated_first():
    clones = settled_clones(replicas=3)
    broken = clones.pod_names[1]
    clones.run(broken, ready=False)
    clones.round()
    clones.roll()
    assert clones.round() == [("patch", broken)]


def test_update_stops_at_unready_pod():
    clones = settled_clones(replicas=5, updateStrategy={**IN_PLACE, "maxUnavailable": 2})
    clones.roll()
    for _ in range(10):
        clones.round()
        for name in clones.pod_names:
            image = clones.get(PODS, name)["spec"]["containers"][0]["image"]
            clones.run(name, ready=image == "a:1")
    assert clones.images == ["a:1"] * 3 + ["a:2"] * 2


def test_update_priority_orders_pods():
    strategy = {"partition": 1, "priorityStrategy": {"orderPriority": [{"orderedKey": "turn"}]}}
    clones = settled_clones(replicas=2)
    late, early = clones.pod_names
    clones.label(late, turn="2")
    clones.label(early, turn="10")
    clones.strategy(**strategy)
    clones.roll()
    assert clones.round() == [("patch", early)]


def test_scatter_strategy_spreads_update():
    clones = settled_clones(replicas=6, updateStrategy={"scatterStrategy": [{"key": "kind", "value": "x"}]})
    marked = clones.pod_names[:3]
    for name in marked:
        clones.label(name, kind="x")
    clones.roll()
    gone = []
    for _ in range(40):
        gone += [name for verb, name in clones.round() if verb == "delete"]
        clones.run_all()
    kinds = ["x" if name in marked else "-" for name in gone]
    assert kinds == ["x", "-", "x", "-", "x", "-"]


def test_specified_pod_is_marked_once():
    clones = settled_clones(replicas=2, updateStrategy={"maxUnavailable": 0, "maxSurge": 1})
    for name in clones.pod_names:
        clones.specify(name)
    clones.roll()
    clones.round()
    assert clones.messages_of("SuccessfulUpdatePodReCreate") == []


def test_old_revisions_are_deleted():
    clones = settled_clones(replicas=1, updateStrategy=IN_PLACE, revisionHistoryLimit=2)
    for number in range(2, 8):
        clones.roll(f"a:{number}")
        clones.settle()
    assert len(clones.names_of_revisions()) == 3, "two that are past, and the current one"
