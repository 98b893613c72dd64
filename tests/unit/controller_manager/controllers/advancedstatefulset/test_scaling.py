"""How the pods of an advanced set come and go."""

import pytest

from mockube.apimachinery import meta
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from tests.support.controllers.advancedsets import AdvancedSets, rolling
from tests.support.controllers.statefulsets import claim_template


def settled(**spec):
    sets = AdvancedSets(**spec)
    sets.settle()
    return sets


def test_pods_come_one_after_the_other():
    sets = AdvancedSets()
    assert sets.round() == [("create", "web-0")]
    assert sets.round() == []
    sets.run(0)
    assert sets.round() == [("create", "web-1")]


def test_a_pod_is_available_only_after_the_seconds_of_the_strategy():
    sets = AdvancedSets(replicas=2, updateStrategy=rolling(minReadySeconds=10), minReadySeconds=99)
    sets.round()
    sets.run(0)
    assert sets.round() == []
    assert sets.plan_web().again_after.total_seconds() == 10
    sets.clock.advance(10)
    assert sets.round() == [("create", "web-1")]


def test_a_pod_that_is_reserved_goes_and_another_comes_behind():
    sets = settled()
    sets.reserve(1)
    assert sets.round() == [("create", "web-3")]
    sets.run(3)
    assert sets.round() == [("delete", "web-1")]
    sets.settle()
    assert sets.pods == ["web-0", "web-2", "web-3"]


def test_with_fewer_replicas_the_reserved_pod_alone_goes():
    sets = settled()
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
def test_no_more_come_while_so_many_are_not_available(limit, rounds):
    scaling = {} if limit is None else {"scaleStrategy": {"maxUnavailable": limit}}
    sets = AdvancedSets(replicas=7, podManagementPolicy="Parallel", **scaling)
    made = []
    for _ in rounds:
        made.append(len(sets.round()))
        assert sets.round() == []
        sets.run_all()
    assert made == rounds


def test_pods_that_are_reserved_go_while_others_may_not_come():
    sets = settled(replicas=3, podManagementPolicy="Parallel", scaleStrategy={"maxUnavailable": 1})
    sets.run(0, ready=False)
    sets.reserve(1)
    assert sets.round() == [("delete", "web-1")]


def test_a_pod_that_ended_holds_up_all_others_even_in_parallel():
    sets = AdvancedSets(podManagementPolicy="Parallel", replicas=3)
    sets.round()
    sets.remove_pod(2)
    sets.run(0, phase="Failed")
    assert sets.round() == [("delete", "web-0")]
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("create", "web-0"), ("create", "web-2")]


# --- claims


def test_claims_go_with_a_pod_whose_ordinal_is_reserved():
    sets = settled(
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


def test_a_claim_that_belongs_to_others_gets_one_owner_more():
    sets = settled(replicas=1, volumeClaimTemplates=[claim_template()])
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x", "controller": True}
    claim = sets.get(PERSISTENT_VOLUME_CLAIMS, "data-web-0")
    sets.put(PERSISTENT_VOLUME_CLAIMS, meta.with_metadata(claim, ownerReferences=[other]))
    sets.change_spec("persistentVolumeClaimRetentionPolicy", to={"whenDeleted": "Delete"})
    sets.round()
    owners = meta.owner_references(sets.get(PERSISTENT_VOLUME_CLAIMS, "data-web-0"))
    assert [one["kind"] for one in owners] == ["ConfigMap", "StatefulSet"]
    assert sets.messages_of("ConflictingController") == []


def test_a_set_whose_limit_cannot_be_read_is_left_alone():
    sets = AdvancedSets(updateStrategy=rolling(maxUnavailable="many"))
    assert sets.round() == []
    assert sets.all(PODS) == []
