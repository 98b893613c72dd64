"""Advanced StatefulSet: in-place updates of pods."""

import orjson
import pytest

from mockube.apimachinery import conditions, meta
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS
from mockube.packs.kruise.inplace.lifecycle import LABEL_STATE
from mockube.packs.kruise.inplace.record import ANNOTATION_GRACE, ANNOTATION_STATE
from mockube.packs.kruise.inplace.update import GATE
from tests.packs.kruise.support.advancedsets import AdvancedStatefulSetHarness, in_place, template


def settled_sets(policy="InPlaceIfPossible", *, replicas=2, parallel=True, **fields):
    sets = AdvancedStatefulSetHarness(
        replicas=replicas,
        podManagementPolicy="Parallel" if parallel else "OrderedReady",
        template=template(),
        updateStrategy=in_place(policy, **fields),
    )
    sets.settle()
    return sets


def roll(sets, image="a:2", **labels):
    sets.change_spec("template", to=template(image, **labels))


def template_with_command(image="a:2"):
    body = template(image)
    return meta.with_value(body, ("spec", "containers"), [{"name": "c", "image": image, "command": ["x"]}])


def uids(sets):
    return {name: meta.uid(sets.get(PODS, name)) for name in sets.pods}


def is_ready(sets, ordinal):
    return conditions.is_true(sets.pod(ordinal), "Ready")


def test_images_are_replaced_in_place():
    sets = settled_sets()
    before = uids(sets)
    roll(sets)
    sets.settle()
    assert uids(sets) == before
    assert {sets.image(0), sets.image(1)} == {"a:2"}
    revision = sets.status["updateRevision"]
    assert sets.status["currentRevision"] == revision
    assert {sets.revision_of(0), sets.revision_of(1)} == {revision}
    assert sets.messages_of("SuccessfulUpdatePodInPlace") == [
        f"successfully update pod web-{ordinal} in-place(revision {revision})" for ordinal in (1, 0)
    ]


def test_readiness_gate_is_false_before_update_and_true_after():
    sets = settled_sets(replicas=1)
    assert conditions.is_true(sets.pod(0), GATE)
    roll(sets)
    sets.round()
    gate = conditions.get(sets.pod(0), GATE)
    assert (gate["status"], gate["reason"]) == ("False", "StartInPlaceUpdate")
    assert not is_ready(sets, 0)
    state = orjson.loads(meta.annotations(sets.pod(0))[ANNOTATION_STATE])
    assert state["lastContainerStatuses"] == {"c": {"imageID": "id-a:1"}}
    assert (sets.image(0), sets.state(0)) == ("a:2", "Updating")
    assert sets.round() == []
    sets.run(0)
    assert not is_ready(sets, 0)
    sets.round()
    assert (conditions.status(sets.pod(0), GATE), sets.state(0)) == ("True", "Normal")
    sets.run(0)
    assert is_ready(sets, 0)


@pytest.mark.parametrize("parallel", [True, False], ids=["parallel", "in-order"])
def test_pod_in_update_is_unavailable(parallel):
    sets = settled_sets(parallel=parallel, replicas=3)
    roll(sets)
    changed = []
    for _ in range(3):
        changed.append({name for _, name in sets.round()})
        assert sets.round() == []
        sets.run_all()
        sets.round()
        sets.run_all()
    assert changed == [{"web-2"}, {"web-1"}, {"web-0"}]


def test_labels_change_without_restart():
    sets = settled_sets(replicas=1)
    before = uids(sets)
    roll(sets, "a:1", tier="gold")
    sets.settle()
    assert uids(sets) == before
    assert meta.labels(sets.pod(0))["tier"] == "gold"


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        pytest.param("ReCreate", False, id="recreate"),
        pytest.param("InPlaceIfPossible", False, id="in-place-if-possible"),
        pytest.param("InPlaceOnly", True, id="in-place-only"),
    ],
)
def test_unsupported_in_place_change_follows_policy(policy, kept):
    sets = settled_sets(policy)
    before = uids(sets)
    sets.change_spec("template", to=template_with_command())
    sets.settle()
    assert (uids(sets) == before) is kept
    assert (sets.image(0) == "a:1") is kept
    assert sets.plan_web().actions == ()


def test_pod_of_unknown_revision_is_recreated():
    sets = settled_sets(replicas=1)
    before = uids(sets)
    roll(sets)
    sets.remove(CONTROLLER_REVISIONS, sets.revision_of(0))
    sets.settle()
    assert uids(sets) != before


def test_pods_without_readiness_gate_are_updated_in_place():
    sets = AdvancedStatefulSetHarness(replicas=1, updateStrategy=in_place())
    sets.settle()
    before = uids(sets)
    sets.roll("a:2")
    assert sets.round() == [("patch", "web-0")]
    assert sets.status["currentReplicas"] == 0
    sets.settle()
    assert (uids(sets), sets.image(0), sets.state(0)) == (before, "a:2", "Normal")


def test_unlabelled_pod_in_update_is_unavailable():
    """A pod that had no lifecycle label when its update began is such a pod."""
    sets = AdvancedStatefulSetHarness(replicas=2, podManagementPolicy="Parallel", updateStrategy=in_place())
    sets.settle()
    sets.roll("a:2")
    assert sets.round() == [("patch", "web-1")]
    sets.label(1, **{LABEL_STATE: None})
    assert sets.round() == []
    sets.run(1)
    assert sets.round() == [("patch", "web-0")]


def test_pod_outdated_before_gate_opens_is_updated_at_once():
    sets = settled_sets(replicas=0)
    sets.scale(1)
    sets.round()
    roll(sets)
    assert sets.round() == [("patch", "web-0")] * 2
    assert (sets.image(0), conditions.status(sets.pod(0), GATE)) == ("a:2", "False")
    sets.settle()
    assert is_ready(sets, 0)


def test_gate_closed_before_failed_update_stays_closed():
    sets = settled_sets(replicas=1)
    roll(sets)
    close_gate(sets)
    sets.run(0)
    assert sets.round() == [("patch", "web-0")]
    assert (sets.image(0), conditions.status(sets.pod(0), GATE)) == ("a:2", "False")


def test_gate_closed_without_update_opens():
    sets = settled_sets(replicas=1)
    close_gate(sets)
    sets.settle()
    assert is_ready(sets, 0)


def close_gate(sets):
    shut = {"type": GATE, "status": "False", "reason": "StartInPlaceUpdate"}
    pod_conditions = conditions.set_condition(conditions.of(sets.pod(0)), shut, sets.clock.now())
    sets.change(PODS, "web-0", ("status", "conditions"), pod_conditions)


def test_specified_pod_is_deleted_not_updated():
    sets = settled_sets(maxUnavailable=2)
    roll(sets)
    sets.specify(0)
    assert [verb for verb, name in sets.round() if name == "web-0"] == ["delete"]


# --- grace


def test_pod_is_unready_during_grace_before_update():
    sets = settled_sets(replicas=1, inPlaceUpdateStrategy={"gracePeriodSeconds": 30})
    roll(sets)
    sets.round()
    assert (sets.image(0), sets.revision_of(0)) == ("a:1", sets.status["updateRevision"])
    assert ANNOTATION_GRACE in meta.annotations(sets.pod(0))
    assert sets.plan_web().requeue_after.total_seconds() == 30
    sets.clock.advance(29)
    assert sets.round() == []
    sets.clock.advance(1)
    sets.round()
    assert sets.image(0) == "a:2"
    assert ANNOTATION_GRACE not in meta.annotations(sets.pod(0))
    sets.settle()
    assert is_ready(sets, 0)


def test_revision_rolled_during_grace_is_applied_after_it():
    sets = settled_sets(replicas=1, inPlaceUpdateStrategy={"gracePeriodSeconds": 30})
    roll(sets)
    sets.round()
    roll(sets, "a:3")
    assert sets.round() == []
    for _ in range(2):
        sets.clock.advance(30)
        sets.settle()
    assert sets.image(0) == "a:3"
    assert sets.status["currentRevision"] == sets.status["updateRevision"]


def test_pod_in_grace_is_unavailable():
    sets = settled_sets(replicas=2, inPlaceUpdateStrategy={"gracePeriodSeconds": 30})
    roll(sets)
    assert {name for _, name in sets.round()} == {"web-1"}
    sets.settle()
    assert sets.image(0) == "a:1"
    assert not conditions.is_true(sets.pod(1), GATE)
