"""Advanced StatefulSet: status, conditions and Events."""

import pytest

from mockube.apimachinery import meta, status
from mockube.apimachinery.groups import GroupResource
from mockube.client.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from mockube.controller_manager.control.actions import Update
from mockube.packs.kruise.kinds import ADVANCED_STATEFUL_SETS
from tests.packs.kruise.support.advancedsets import AdvancedStatefulSetHarness, rolling
from tests.support.controllers.statefulsets import claim_template, statefulset

QUOTA = status.forbidden(GroupResource("", "pods"), "web-0", "exceeded quota: q")


def settled_sets(**spec):
    sets = AdvancedStatefulSetHarness(**spec)
    sets.settle()
    return sets


def written_status(sets, error=None):
    """Return the status that is written after a plan with this error, or None."""
    writes = [it for it in sets.plan_web().last(error) if isinstance(it, Update)]
    return writes[0].body["status"] if writes else None


def test_status_of_complete_set():
    sets = settled_sets(
        replicas=2, updateStrategy=rolling(minReadySeconds=10), podManagementPolicy="Parallel"
    )
    revision = sets.status["updateRevision"]
    expected = {
        "observedGeneration": 1,
        "replicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 0,
        "currentReplicas": 2,
        "updatedReplicas": 2,
        "updatedReadyReplicas": 2,
        "updatedAvailableReplicas": 0,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
        "labelSelector": "app=web",
    }
    assert sets.status == expected
    sets.clock.advance(10)
    sets.settle()
    assert sets.status == expected | {"availableReplicas": 2, "updatedAvailableReplicas": 2}


def test_update_revision_is_counted_separately():
    sets = settled_sets(replicas=3, updateStrategy=rolling(partition=2))
    sets.roll("a:2")
    sets.settle()
    sets.run(0, ready=False)
    sets.round()
    counts = {field: value for field, value in sets.status.items() if field.endswith("Replicas")}
    assert counts == {
        "readyReplicas": 2,
        "availableReplicas": 2,
        "currentReplicas": 2,
        "updatedReplicas": 1,
        "updatedReadyReplicas": 1,
        "updatedAvailableReplicas": 1,
    }


def test_set_with_lost_partition_pods_is_not_complete():
    sets = settled_sets(
        replicas=3, podManagementPolicy="Parallel", updateStrategy=rolling(partition=2, maxUnavailable=3)
    )
    sets.roll("a:2")
    sets.settle()
    before = sets.status["currentRevision"]
    sets.remove_pod(0)
    sets.remove_pod(1)
    sets.settle()
    assert sets.status["currentRevision"] == before
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:1", "a:1", "a:2"]


# --- claims


def claim_with_storage(request, **changes):
    template = claim_template()
    template["spec"] |= {"resources": {"requests": {"storage": request}}, **changes}
    return template


@pytest.mark.parametrize(
    ("template", "compatible"),
    [
        pytest.param(claim_with_storage("1Gi"), 2, id="same"),
        pytest.param(claim_with_storage("500Mi"), 2, id="smaller"),
        pytest.param(claim_with_storage("2Gi"), 0, id="larger"),
        pytest.param(claim_with_storage("1Gi", accessModes=["ReadWriteMany"]), 0, id="other-modes"),
        pytest.param(claim_with_storage("1Gi", storageClassName="slow"), 0, id="other-class"),
    ],
)
def test_claims_are_compared_with_templates(template, compatible):
    sets = settled_sets(replicas=2, volumeClaimTemplates=[claim_with_storage("1Gi", storageClassName="fast")])
    capacity = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    sets.change(PERSISTENT_VOLUME_CLAIMS, "data-web-0", ("status",), capacity)
    sets.change_spec("volumeClaimTemplates", to=[template])
    sets.settle()
    (told,) = sets.status["volumeClaims"]
    assert told == {
        "volumeClaimName": "data",
        "compatibleReplicas": compatible,
        "compatibleReadyReplicas": 1 if compatible else 0,
    }


# --- conditions


def test_failed_pod_creation_sets_condition():
    sets = AdvancedStatefulSetHarness()
    sets.round()
    sets.remove_pod(0)
    (condition,) = written_status(sets, QUOTA)["conditions"]
    assert (condition["type"], condition["status"]) == ("FailedCreatePod", "True")
    assert condition["message"] == (
        'StatefulPodControl failed to create Pod error: pods "web-0" is forbidden: exceeded quota: q'
    )


def test_failure_condition_is_removed_after_success():
    sets = AdvancedStatefulSetHarness()
    sets.round()
    sets.remove_pod(0)
    sets.change(ADVANCED_STATEFUL_SETS, "web", ("status",), written_status(sets, QUOTA))
    assert written_status(sets, QUOTA) is None
    sets.settle()
    assert "conditions" not in sets.status


def test_failed_pod_update_sets_condition():
    sets = settled_sets(replicas=1)
    sets.put(PODS, meta.with_labels(sets.pod(0), {"statefulset.kubernetes.io/pod-name": "other"}))
    (condition,) = written_status(sets, QUOTA)["conditions"]
    assert condition["type"] == "FailedUpdatePod"


def test_other_errors_set_no_condition():
    sets = AdvancedStatefulSetHarness()
    sets.round()
    sets.remove_pod(0)
    assert written_status(sets, status.Conflict("web-0")) is None


# --- events and ownership of pods


def test_events_are_upstreams():
    sets = settled_sets(replicas=1, volumeClaimTemplates=[claim_template()])
    sets.scale(0)
    sets.settle()
    assert [message for _, _, message in sets.events] == [
        "create Claim data-web-0 Pod web-0 in StatefulSet web success",
        "create Pod web-0 in StatefulSet web successful",
        "delete Pod web-0 in StatefulSet web successful",
    ]


def test_stateful_set_of_same_name_is_not_related():
    sets = settled_sets(replicas=1)
    sets.add(STATEFUL_SETS, statefulset(replicas=3))
    (reference,) = meta.owner_references(sets.pod(0))
    assert reference["apiVersion"] == "apps.kruise.io/v1beta1"
    sets.settle()
    assert sets.pods == ["web-0"]


def test_deleting_set_updates_status_only():
    sets = settled_sets(replicas=2)
    sets.run(0, ready=False)
    sets.delete_set()
    sets.scale(5)
    assert sets.round() == []
    assert sets.status["readyReplicas"] == 1


def test_old_revisions_are_deleted():
    sets = settled_sets(replicas=1, revisionHistoryLimit=1)
    for image in ("a:2", "a:3", "a:4"):
        sets.roll(image)
        sets.settle()
    assert len(sets.caches().of(CONTROLLER_REVISIONS).all()) == 2
