"""Conversion of OpenKruise's workloads between API versions, in both directions."""

import pytest

from mockube.apimachinery.packs import clonesets, uniteddeployments
from mockube.apimachinery.packs.clonesets import ALPHA, BETA, LABEL_EXCLUDE_PREPARING_DELETE


def clone_set(*, labels=None, **spec):
    return {"apiVersion": ALPHA, "kind": "CloneSet", "metadata": {"labels": labels or {}}, "spec": spec}


def test_update_strategy_type_moves_into_rolling_update():
    given = clone_set(updateStrategy={"type": "InPlaceOnly", "partition": 3, "paused": True})
    converted = clonesets.to_v1beta1(given)
    assert converted["apiVersion"] == BETA
    assert converted["spec"]["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "partition": 3, "paused": True},
    }
    assert clonesets.to_v1alpha1(converted)["spec"]["updateStrategy"] == given["spec"]["updateStrategy"]


@pytest.mark.parametrize(
    ("disable", "enable"),
    [
        pytest.param(True, False, id="claims are not used again"),
        pytest.param(False, True, id="claims are used again"),
        pytest.param(None, True, id="v1alpha1 reuses PVCs by default"),
    ],
)
def test_pvc_reuse_flag_is_inverted_between_versions(disable, enable):
    scale = {} if disable is None else {"disablePVCReuse": disable}
    converted = clonesets.to_v1beta1(clone_set(scaleStrategy=scale))
    assert converted["spec"]["scaleStrategy"] == {"enablePVCReuse": enable}
    back = clonesets.to_v1alpha1(converted)["spec"]["scaleStrategy"]
    assert back.get("disablePVCReuse", False) is not enable


def test_v1beta1_without_pvc_reuse_disables_it():
    assert clonesets.to_v1alpha1({"spec": {}})["spec"]["scaleStrategy"] == {"disablePVCReuse": True}


def test_label_becomes_field_and_stays_label():
    labels = {LABEL_EXCLUDE_PREPARING_DELETE: "true"}
    converted = clonesets.to_v1beta1(clone_set(labels=labels))
    assert converted["spec"]["scaleStrategy"]["excludePreparingDelete"] is True
    back = clonesets.to_v1alpha1(converted)
    assert "excludePreparingDelete" not in back["spec"]["scaleStrategy"]
    assert back["metadata"]["labels"] == labels


def test_on_delete_strategy_has_no_rolling_update():
    converted = clonesets.to_v1beta1(clone_set(updateStrategy={"type": "OnDelete"}))
    assert converted["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert clonesets.to_v1alpha1(converted)["spec"]["updateStrategy"] == {"type": "OnDelete"}


STATUS = {
    "replicas": 5,
    "subsetReplicas": {"a": 2, "b": 3},
    "updateStatus": {"updatedRevision": "foo-1", "currentPartitions": {"a": 1}},
    "subsetStatuses": [{"name": "a", "readyReplicas": 2}],
}


def united_deployment(**parts):
    return {"apiVersion": ALPHA, "kind": "UnitedDeployment", "metadata": {}, **parts}


def test_subset_maps_become_subset_statuses():
    converted = uniteddeployments.to_v1beta1(united_deployment(status=STATUS))
    assert converted["status"] == {
        "replicas": 5,
        "updatedRevision": "foo-1",
        "subsetStatuses": [
            {"name": "a", "readyReplicas": 2, "replicas": 2, "partition": 1},
            {"name": "b", "replicas": 3},
        ],
    }


def test_subset_statuses_become_subset_maps():
    converted = uniteddeployments.to_v1beta1(united_deployment(status=STATUS))
    status = uniteddeployments.to_v1alpha1(converted)["status"]
    assert status["subsetReplicas"] == STATUS["subsetReplicas"]
    assert status["updateStatus"] == {
        "updatedRevision": "foo-1",
        "currentPartitions": {"a": 1, "b": 0},
    }


def test_empty_status_stays_empty():
    assert uniteddeployments.to_v1alpha1(united_deployment(status={"replicas": 0}))["status"] == {
        "replicas": 0
    }


def test_clone_set_template_is_converted_with_united_deployment():
    template = {"cloneSetTemplate": {"spec": {"updateStrategy": {"partition": 2}}}}
    given = united_deployment(spec={"template": template})
    converted = uniteddeployments.to_v1beta1(given)
    strategy = converted["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"]["partition"] == 2
    back = uniteddeployments.to_v1alpha1(converted)["spec"]["template"]["cloneSetTemplate"]["spec"]
    assert back["updateStrategy"] == {"type": "ReCreate", "partition": 2}
    assert given == united_deployment(spec={"template": template})


def test_templates_of_other_kinds_are_not_converted():
    spec = {"template": {"deploymentTemplate": {"spec": {"replicas": 1}}}}
    assert uniteddeployments.to_v1beta1(united_deployment(spec=spec)) == united_deployment(spec=spec) | {
        "apiVersion": BETA
    }
