"""StatefulSet: claims are created before their pods, and kept or deleted by the retention policy."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, STATEFUL_SETS
from tests.support.controllers.statefulsets import StatefulSetHarness, claim_template

PVC = PERSISTENT_VOLUME_CLAIMS


def sets_with_claims(deleted="Retain", scaled="Retain", **spec):
    retention = {"whenDeleted": deleted, "whenScaled": scaled}
    return StatefulSetHarness(
        volumeClaimTemplates=[claim_template()], persistentVolumeClaimRetentionPolicy=retention, **spec
    )


def owners(sets, name):
    return [ref["kind"] for ref in meta.owner_references(sets.get(PVC, name))]


def test_claims_are_created_before_their_pod():
    sets = StatefulSetHarness(volumeClaimTemplates=[claim_template("data"), claim_template("logs")])
    sets.round()
    made = [name for verb, _, name in sets.done if verb == "create"]
    assert made[-3:] == ["data-web-0", "logs-web-0", "web-0"]


def test_claim_has_labels_of_template_and_selector():
    template = claim_template()
    template["metadata"]["labels"] = {"tier": "x", "app": "other"}
    sets = StatefulSetHarness(volumeClaimTemplates=[template], replicas=1)
    sets.round()
    claim = sets.get(PVC, "data-web-0")
    assert meta.labels(claim) == {"tier": "x", "app": "web"}
    assert claim["spec"] == template["spec"]


def test_existing_claim_is_reused():
    sets = sets_with_claims(replicas=2)
    sets.settle()
    sets.scale(1)
    sets.settle()
    assert sets.claims == ["data-web-0", "data-web-1"]
    sets.scale(2)
    sets.settle()
    assert sets.pods == ["web-0", "web-1"]
    assert [name for verb, _, name in sets.done if verb == "create"].count("data-web-1") == 1


@pytest.mark.parametrize(
    ("deleted", "scaled", "wanted", "condemned"),
    [
        pytest.param("Retain", "Retain", [], [], id="retained always"),
        pytest.param("Delete", "Retain", ["StatefulSet"], ["StatefulSet"], id="deleted with the set"),
        pytest.param("Retain", "Delete", [], ["Pod"], id="deleted on scale down"),
        pytest.param(
            "Delete", "Delete", ["StatefulSet"], ["Pod"], id="deleted with the set and on scale down"
        ),
    ],
)
def test_claim_owners_follow_retention_policy(deleted, scaled, wanted, condemned):
    sets = sets_with_claims(deleted, scaled, replicas=2)
    sets.settle()
    assert owners(sets, "data-web-1") == wanted
    sets.scale(1)
    sets.round()
    assert owners(sets, "data-web-0") == wanted
    assert owners(sets, "data-web-1") == condemned


def test_claim_deleted_with_its_pod_is_recreated():
    sets = sets_with_claims(scaled="Delete", replicas=2)
    sets.settle()
    sets.scale(1)
    sets.settle()
    assert sets.claims == ["data-web-0"]
    sets.scale(2)
    sets.settle()
    assert sets.claims == ["data-web-0", "data-web-1"]
    assert owners(sets, "data-web-1") == []


def test_pod_waits_for_deletion_of_predecessors_claim():
    sets = sets_with_claims(scaled="Delete", replicas=2)
    sets.settle()
    sets.scale(1)
    sets.round()
    sets.remove_pod(1)  # and the garbage collector has not run yet
    sets.scale(2)
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("create", "web-1")]


def test_pod_waits_for_deleting_claim():
    sets = sets_with_claims(replicas=1)
    sets.settle()
    claim = meta.with_finalizer(sets.get(PVC, "data-web-0"), "kubernetes.io/pvc-protection")
    sets.put(PVC, meta.with_metadata(claim, deletionTimestamp="2030-01-01T00:00:00Z"))
    sets.remove_pod(0)
    assert sets.round() == []
    assert sets.events[-1] == (
        "Warning",
        "FailedCreate",
        "Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted",
    )
    sets.remove(PVC, "data-web-0")
    assert sets.round() == [("create", "web-0")]


def test_lost_claim_of_pending_pod_is_recreated():
    sets = sets_with_claims(replicas=1)
    sets.round()
    sets.remove(PVC, "data-web-0")
    sets.round()
    assert sets.claims == ["data-web-0"]


def test_claim_of_other_controller_is_not_owned():
    sets = sets_with_claims(deleted="Delete", replicas=1)
    sets.settle()
    other = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o", "controller": True}
    claim = sets.get(PVC, "data-web-0")
    refs = [*meta.owner_references(claim), other]
    sets.put(PVC, meta.with_metadata(claim, ownerReferences=refs))
    sets.round()
    assert owners(sets, "data-web-0") == ["Other"]
    assert sets.events[-1][:2] == ("Warning", "ConflictingController")
    said = len(sets.events)
    sets.round()
    assert len(sets.events) == said


def test_claim_of_former_set_is_not_owned():
    sets = sets_with_claims(deleted="Delete", replicas=1)
    sets.settle()
    claim = sets.get(PVC, "data-web-0")
    (ref,) = meta.owner_references(claim)
    sets.put(PVC, meta.with_metadata(claim, ownerReferences=[{**ref, "uid": "before"}]))
    before = sets.revision
    sets.round()
    assert sets.revision == before


def test_changed_retention_policy_updates_owners():
    sets = sets_with_claims(replicas=1)
    sets.settle()
    path = ("persistentVolumeClaimRetentionPolicy", "whenDeleted")
    sets.respecify(STATEFUL_SETS, "web", path, "Delete")
    sets.settle()
    assert owners(sets, "data-web-0") == ["StatefulSet"]
