"""Advanced StatefulSet: lifecycle hooks hold pods before they are ready, updated or deleted."""

from mockube.apimachinery import conditions, meta
from mockube.client.kinds import PODS
from tests.packs.kruise.support.advancedsets import (
    SPECIFIED_DELETE,
    AdvancedStatefulSetHarness,
    in_place,
    template,
)

LABEL = {"labelsHandler": {"held-by": "me"}}
MARKING = {**LABEL, "markPodNotReady": True}
FINALIZER = {"finalizersHandler": ["example.com/held"]}


def sets_with_hooks(replicas=1, *, policy="Parallel", held=True, **lifecycle):
    labels = {"held-by": "me"} if held else {}
    return AdvancedStatefulSetHarness(
        replicas=replicas,
        podManagementPolicy=policy,
        template=template(**labels),
        lifecycle=lifecycle,
        updateStrategy=in_place(maxUnavailable=1),
    )


def settled_sets(*args, **kwargs):
    sets = sets_with_hooks(*args, **kwargs)
    sets.settle()
    return sets


def release_pod(sets, ordinal):
    sets.put(PODS, meta.with_labels(sets.pod(ordinal), {"held-by": None}))


def hold_pod(sets, ordinal):
    sets.put(PODS, meta.with_labels(sets.pod(ordinal), {"held-by": "me"}))


def names(sets):
    return [(verb, name) for verb, name in sets.round() if verb != "patch"]


def test_new_pod_is_normal_at_once():
    sets = settled_sets()
    assert sets.state(0) == "Normal"
    assert meta.annotations(sets.pod(0))["lifecycle.apps.kruise.io/timestamp"]


def test_new_pod_is_unavailable_until_all_hooks_are_set():
    sets = settled_sets(2, policy="OrderedReady", held=False, preNormal=LABEL)
    assert (sets.pods, sets.state(0)) == (["web-0"], "PreparingNormal")
    counted = {field: sets.status[field] for field in ("readyReplicas", "availableReplicas")}
    assert counted == {"readyReplicas": 1, "availableReplicas": 0}
    hold_pod(sets, 0)
    sets.settle()
    assert (sets.pods, sets.state(0)) == (["web-0", "web-1"], "Normal")


def test_template_with_hooks_creates_normal_pods():
    sets = settled_sets(preNormal=LABEL)
    assert (sets.state(0), sets.status["availableReplicas"]) == ("Normal", 1)


def test_hooked_pod_is_deleted_after_hook_label_is_removed():
    sets = settled_sets(2, preDelete=LABEL)
    sets.scale(1)
    assert sets.round() == [("patch", "web-1")]
    assert sets.state(1) == "PreparingDelete"
    assert sets.round() == []
    sets.settle()
    assert sets.pods == ["web-0", "web-1"]
    release_pod(sets, 1)
    assert sets.round() == [("delete", "web-1")]


def test_hook_finalizer_blocks_deletion():
    sets = settled_sets(1, held=False, preDelete=FINALIZER)
    sets.put(PODS, meta.with_finalizer(sets.pod(0), "example.com/held"))
    sets.scale(0)
    sets.settle()
    assert sets.state(0) == "PreparingDelete"
    sets.put(PODS, meta.without_finalizer(sets.pod(0), "example.com/held"))
    sets.settle()
    assert sets.pods == []


def test_pod_preparing_delete_is_not_ready_if_hook_marks_it():
    sets = settled_sets(2, preDelete=MARKING)
    sets.scale(1)
    sets.settle()
    assert (sets.state(1), is_ready(sets, 1), is_ready(sets, 0)) == ("PreparingDelete", False, True)
    release_pod(sets, 1)
    sets.settle()
    assert sets.pods == ["web-0"]


def test_updated_pod_becomes_ready_again():
    sets = settled_sets(1, inPlaceUpdate=MARKING)
    roll(sets, "a:2")
    sets.settle()
    assert (sets.state(0), is_ready(sets, 0)) == ("PreparingUpdate", False)
    release_pod(sets, 0)
    sets.settle()
    assert (sets.state(0), sets.image(0), is_ready(sets, 0)) == ("Updated", "a:2", True)


def is_ready(sets, ordinal):
    return conditions.is_true(sets.pod(ordinal), "Ready")


def test_ordered_deletion_prepares_one_pod_at_a_time():
    sets = settled_sets(3, policy="OrderedReady", preDelete=LABEL)
    sets.scale(1)
    assert sets.round() == [("patch", "web-2")]
    assert sets.round() == []
    release_pod(sets, 2)
    assert sets.round() == [("delete", "web-2")]
    sets.finish()
    assert sets.round() == [("patch", "web-1")]


def test_replaced_pod_waits_for_hook_and_keeps_its_ordinal():
    sets = settled_sets(2, preDelete=LABEL)
    sets.change_spec("updateStrategy", to=in_place("ReCreate", maxUnavailable=1))
    sets.change_spec("template", to=template("a:2"))
    assert sets.round() == [("patch", "web-1")]
    sets.settle()
    assert (sets.pods, sets.state(0), sets.state(1)) == (["web-0", "web-1"], "Normal", "PreparingDelete")
    release_pod(sets, 1)
    assert sets.round() == [("delete", "web-1")]


def test_finished_pod_with_hook_waits():
    sets = settled_sets(1, preDelete=LABEL)
    sets.run(0, phase="Failed")
    assert sets.round() == [("patch", "web-0")]
    assert sets.round() == []
    release_pod(sets, 0)
    assert sets.round() == [("delete", "web-0")]


def test_hook_label_controls_update_and_normal_state():
    sets = settled_sets(2, inPlaceUpdate=LABEL)
    roll(sets, "a:2")
    sets.settle()
    assert [sets.state(ordinal) for ordinal in (0, 1)] == ["Normal", "PreparingUpdate"]
    assert sets.image(1) == "a:1"
    release_pod(sets, 1)
    sets.settle()
    assert (sets.image(1), sets.state(1)) == ("a:2", "Updated")
    assert sets.state(0) == "Normal"
    hold_pod(sets, 1)
    sets.settle()
    assert [sets.state(ordinal) for ordinal in (0, 1)] == ["PreparingUpdate", "Normal"]


def test_ordered_update_changes_unavailable_pod_that_is_released_by_hook():
    sets = settled_sets(2, policy="OrderedReady", inPlaceUpdate=MARKING)
    roll(sets, "a:2")
    sets.settle()
    assert [sets.state(ordinal) for ordinal in (0, 1)] == ["Normal", "PreparingUpdate"]
    release_pod(sets, 1)
    sets.settle()
    assert (sets.image(1), sets.state(1), sets.state(0)) == ("a:2", "Updated", "Normal")
    hold_pod(sets, 1)
    sets.settle()
    assert [sets.state(ordinal) for ordinal in (0, 1)] == ["PreparingUpdate", "Normal"]


def test_ordered_scaling_waits_for_hooked_pod():
    sets = settled_sets(2, policy="OrderedReady", inPlaceUpdate=LABEL)
    roll(sets, "a:2")
    sets.settle()
    sets.scale(3)
    sets.settle()
    assert sets.pods == ["web-0", "web-1"]
    sets.scale(1)
    sets.settle()
    assert (sets.pods, sets.state(0)) == (["web-0"], "PreparingUpdate")


def test_updated_pod_waits_for_hook_before_next_update():
    sets = settled_sets(1, inPlaceUpdate=LABEL)
    roll(sets, "a:2")
    sets.settle()
    release_pod(sets, 0)
    sets.settle()
    roll(sets, "a:3")
    sets.settle()
    assert (sets.state(0), meta.labels(sets.pod(0))["held-by"]) == ("PreparingUpdate", "me")
    release_pod(sets, 0)
    sets.settle()
    assert sets.image(0) == "a:3"


def test_just_updated_pod_waits_for_hook_before_next_update():
    sets = settled_sets(1, inPlaceUpdate=LABEL)
    roll(sets, "a:2")
    sets.settle()
    release_pod(sets, 0)
    sets.round()
    roll(sets, "a:3")
    sets.run(0)
    sets.round()
    assert (sets.image(0), sets.state(0)) == ("a:2", "Updated")
    sets.settle()
    assert (sets.image(0), sets.state(0)) == ("a:2", "PreparingUpdate")


def test_rollback_while_waiting_for_hook_cancels_update():
    sets = settled_sets(1, inPlaceUpdate=LABEL)
    roll(sets, "a:2")
    sets.settle()
    assert sets.state(0) == "PreparingUpdate"
    roll(sets, "a:1")
    sets.settle()
    assert (sets.image(0), sets.state(0)) == ("a:1", "Normal")
    assert sets.status["currentRevision"] == sets.status["updateRevision"]


def roll(sets, image):
    sets.change_spec("template", to=template(image, **{"held-by": "me"}))


def test_pod_preparing_delete_is_not_updated():
    sets = settled_sets(2, preDelete=LABEL)
    sets.specify(1)
    sets.settle()
    assert sets.state(1) == "PreparingDelete"
    roll(sets, "a:2")
    assert names(sets) == []
    assert sets.image(1) == "a:1"


def test_pod_no_longer_to_be_deleted_is_not_updated_in_place():
    sets = settled_sets(1, preDelete=LABEL)
    sets.specify(0)
    sets.settle()
    sets.put(PODS, meta.with_labels(sets.pod(0), {SPECIFIED_DELETE: None}))
    roll(sets, "a:2")
    assert sets.round() == []
