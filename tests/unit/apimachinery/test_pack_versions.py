"""OpenKruise's workloads in the version that comes next, and back."""

import pytest

from mockube.apimachinery.packs import clonesets, uniteddeployments
from mockube.apimachinery.packs.clonesets import ALPHA, BETA, LABEL_EXCLUDE_PREPARING_DELETE


def clone_set(*, labels=None, **spec):
    return {"apiVersion": ALPHA, "kind": "CloneSet", "metadata": {"labels": labels or {}}, "spec": spec}


def test_how_pods_are_updated_goes_one_level_down():
    given = clone_set(updateStrategy={"type": "InPlaceOnly", "partition": 3, "paused": True})
    made = clonesets.to_v1beta1(given)
    assert made["apiVersion"] == BETA
    assert made["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "partition": 3, "paused": True},
    }
    assert clonesets.to_v1alpha1(made)["spec"]["updateStrategy"] == given["spec"]["updateStrategy"]


@pytest.mark.parametrize(
    ("disable", "enable"),
    [
        pytest.param(True, False, id="claims are not used again"),
        pytest.param(False, True, id="claims are used again"),
        pytest.param(None, True, id="v1alpha1 uses them if nothing is said"),
    ],
)
def test_the_reuse_of_claims_is_said_the_other_way_round(disable, enable):
    scale = {} if disable is None else {"disablePVCReuse": disable}
    made = clonesets.to_v1beta1(clone_set(scaleStrategy=scale))
    assert made["spec"]["scaleStrategy"] == {"enablePVCReuse": enable}
    back = clonesets.to_v1alpha1(made)["spec"]["scaleStrategy"]
    assert back.get("disablePVCReuse", False) is not enable


def test_v1beta1_uses_no_claims_again_if_nothing_is_said():
    assert clonesets.to_v1alpha1({"spec": {}})["spec"]["scaleStrategy"] == {"disablePVCReuse": True}


def test_a_label_becomes_a_field_and_stays_a_label():
    labels = {LABEL_EXCLUDE_PREPARING_DELETE: "true"}
    made = clonesets.to_v1beta1(clone_set(labels=labels))
    assert made["spec"]["scaleStrategy"]["excludePreparingDelete"] is True
    back = clonesets.to_v1alpha1(made)
    assert "excludePreparingDelete" not in back["spec"]["scaleStrategy"]
    assert back["metadata"]["labels"] == labels


def test_pods_that_are_deleted_by_hand_are_rolled_by_nobody():
    made = clonesets.to_v1beta1(clone_set(updateStrategy={"type": "OnDelete"}))
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert clonesets.to_v1alpha1(made)["spec"]["updateStrategy"] == {"type": "OnDelete"}


STATUS = {
    "replicas": 5,
    "subsetReplicas": {"a": 2, "b": 3},
    "updateStatus": {"updatedRevision": "foo-1", "currentPartitions": {"a": 1}},
    "subsetStatuses": [{"name": "a", "readyReplicas": 2}],
}


def united(**parts):
    return {"apiVersion": ALPHA, "kind": "UnitedDeployment", "metadata": {}, **parts}


def test_maps_of_subsets_become_parts_of_their_statuses():
    made = uniteddeployments.to_v1beta1(united(status=STATUS))
    assert made["status"] == {
        "replicas": 5,
        "updatedRevision": "foo-1",
        "subsetStatuses": [
            {"name": "a", "readyReplicas": 2, "replicas": 2, "partition": 1},
            {"name": "b", "replicas": 3},
        ],
    }


def test_statuses_of_subsets_become_maps_again():
    made = uniteddeployments.to_v1beta1(united(status=STATUS))
    status = uniteddeployments.to_v1alpha1(made)["status"]
    assert status["subsetReplicas"] == STATUS["subsetReplicas"]
    assert status["updateStatus"] == {
        "updatedRevision": "foo-1",
        "currentPartitions": {"a": 1, "b": 0},
    }


def test_a_status_of_nothing_stays_one():
    assert uniteddeployments.to_v1alpha1(united(status={"replicas": 0}))["status"] == {"replicas": 0}


def test_the_template_of_a_clone_set_is_converted_with_what_it_is_in():
    template = {"cloneSetTemplate": {"spec": {"updateStrategy": {"partition": 2}}}}
    given = united(spec={"template": template})
    made = uniteddeployments.to_v1beta1(given)
    strategy = made["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"]["partition"] == 2
    back = uniteddeployments.to_v1alpha1(made)["spec"]["template"]["cloneSetTemplate"]["spec"]
    assert back["updateStrategy"] == {"type": "ReCreate", "partition": 2}
    assert given == united(spec={"template": template})


def test_other_templates_stay_as_they_are():
    spec = {"template": {"deploymentTemplate": {"spec": {"replicas": 1}}}}
    assert uniteddeployments.to_v1beta1(united(spec=spec)) == united(spec=spec) | {"apiVersion": BETA}
