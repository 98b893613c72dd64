"""Advanced StatefulSet: scaling, with reserved ordinals and maxUnavailable."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from tests.packs.kruise.support.advancedsets import AdvancedStatefulSetHarness, rolling
from tests.support.controllers.statefulsets import claim_template


def settled_sets(**spec):
    sets = AdvancedStatefulSetHarness(**spec)
    sets.settle()
    return sets


def test_pods_are_created_in_order():
    sets = AdvancedStatefulSetHarness()
    assert sets.round() == [("create", "web-0")]
    assert sets.round() == []
    sets.run(0)
    assert sets.round() == [("create", "web-1")]


def test_pod_is_available_after_min_ready_seconds():
    sets = AdvancedStatefulSetHarness(
        replicas=2, updateStrategy=rolling(minReadySeconds=10), minReadySeconds=99
    )
    sets.round()
    sets.run(0)
    assert sets.round() == []
    assert sets.plan_web().requeue_after.total_seconds() == 10
    sets.clock.advance(10)
    assert sets.round() == [("create", "web-1")]


def test_reserved_pod_is_deleted_and_next_ordinal_created():
    sets = settled_sets()
    sets.reserve(1)
    assert sets.round() == [("create", "web-3")]
    sets.run(3)
    assert sets.round() == [("delete", "web-1")]
    sets.settle()
    assert sets.pods == ["web-0", "web-2", "web-3"]


def test_scale_down_with_reservation_deletes_reserved_pod_only():
    sets = settled_sets()
    sets.change_spec("replicas", to=2)
    sets.reserve(1)
    sets.settle()
    assert sets.pods == ["web-0", "web-2"]
    assert [name for verb, _, name in sets.done if verb == "delete"] == ["web-1"]


@pytest.mark.parametrize(
    ("limit", "rounds"),
    [
        pytest.param(1, [1, 1, 1], id="one"),
        pytest.param(2, [2, 2, 2], id="two"),
        pytest.param("50%", [3, 3], id="share-rounded-down"),
        pytest.param("1%", [1, 1, 1], id="one-at-least"),
        pytest.param(None, [7], id="no-limit"),
    ],
)
def test_scale_up_waits_for_max_unavailable(limit, rounds):
    scaling = {} if limit is None else {"scaleStrategy": {"maxUnavailable": limit}}
    sets = AdvancedStatefulSetHarness(replicas=7, podManagementPolicy="Parallel", **scaling)
    made = []
    for _ in rounds:
        made.append(len(sets.round()))
        assert sets.round() == []
        sets.run_all()
    assert made == rounds


def test_reserved_pods_are_deleted_while_scale_up_waits():
    sets = settled_sets(replicas=3, podManagementPolicy="Parallel", scaleStrategy={"maxUnavailable": 1})
    sets.run(0, ready=False)
    sets.reserve(1)
    assert sets.round() == [("delete", "web-1")]


def test_finished_pod_blocks_others_even_in_parallel():
    sets = AdvancedStatefulSetHarness(podManagementPolicy="Parallel", replicas=3)
    sets.round()
    sets.remove_pod(2)
    sets.run(0, phase="Failed")
    assert sets.round() == [("delete", "web-0")]
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("create", "web-0"), ("create", "web-2")]


# --- claims


def test_claims_of_reserved_ordinal_are_deleted():
    sets = settled_sets(
        volumeClaimTemplates=[claim_template()],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete", "whenDeleted": "Delete"},
    )
    (reference,) = meta.owner_references(sets.get(PERSISTENT_VOLUME_CLAIMS, "data-web-1"))
    assert reference == {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "StatefulSet",
        "name": "web",
        "uid": meta.uid(sets.set),
    }
    sets.reserve(1)
    sets.round()
    sets.run(3)
    pod = sets.pod(1)
    sets.round()
    (reference,) = meta.owner_references(sets.get(PERSISTENT_VOLUME_CLAIMS, "data-web-1"))
    assert reference == {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": meta.uid(pod)}
    sets.settle()
    assert sets.claims == ["data-web-0", "data-web-2", "data-web-3"]


def test_foreign_claim_gets_additional_owner():
    sets = settled_sets(replicas=1, volumeClaimTemplates=[claim_template()])
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x", "controller": True}
    claim = sets.get(PERSISTENT_VOLUME_CLAIMS, "data-web-0")
    sets.put(PERSISTENT_VOLUME_CLAIMS, meta.with_metadata(claim, ownerReferences=[other]))
    sets.change_spec("persistentVolumeClaimRetentionPolicy", to={"whenDeleted": "Delete"})
    sets.round()
    owners = meta.owner_references(sets.get(PERSISTENT_VOLUME_CLAIMS, "data-web-0"))
    assert [one["kind"] for one in owners] == ["ConfigMap", "StatefulSet"]
    assert sets.messages_of("ConflictingController") == []


def test_set_with_invalid_limit_is_not_reconciled():
    sets = AdvancedStatefulSetHarness(updateStrategy=rolling(maxUnavailable="many"))
    assert sets.round() == []
    assert sets.all(PODS) == []


def test_parallel_pods_are_created_500_at_a_time():
    sets = AdvancedStatefulSetHarness(podManagementPolicy="Parallel", replicas=1200)
    sets.reserve(3)
    assert len(sets.round()) == 500
    assert len(sets.round()) == 500
    assert ("create", "web-1200") in sets.round()
