"""Strategies of pods: creation, update and deletion."""

import pytest

from mockube.apiserver.kinds.core.pod.strategy import APPARMOR_ANNOTATION_PREFIX, OLDER_STRATEGY
from mockube.apiserver.kinds.core.pod.strategy import STRATEGY as PODS
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.requests import NOW_TEXT, request


def pod(**spec):
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **spec}}


def prepared_pod(tree, warnings=None):
    PODS.prepare_create(tree, request(warnings=warnings))
    return tree


def test_new_pod_is_pending():
    assert prepared_pod(pod() | {"status": {"phase": "Running"}})["status"] == {
        "phase": "Pending",
        "qosClass": "BestEffort",
    }


def test_gated_pod_has_scheduling_gated_condition():
    assert prepared_pod(pod(schedulingGates=[{"name": "g"}]))["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": NOW_TEXT,
        }
    ]


@pytest.mark.parametrize(
    ("spec", "status", "asked", "expected"),
    [
        pytest.param({}, {}, None, 0, id="on no node"),
        pytest.param(
            {"nodeName": "n", "terminationGracePeriodSeconds": 7}, {}, None, 7, id="grace period of the pod"
        ),
        pytest.param({"nodeName": "n"}, {}, None, 0, id="no grace period in the pod"),
        pytest.param(
            {"nodeName": "n", "terminationGracePeriodSeconds": 7},
            {},
            3,
            3,
            id="grace period of the delete options",
        ),
        pytest.param({"nodeName": "n", "terminationGracePeriodSeconds": 7}, {}, 0, 0, id="by force"),
        pytest.param({"nodeName": "n", "terminationGracePeriodSeconds": -1}, {}, None, 1, id="negative"),
        pytest.param({"nodeName": "n"}, {"phase": "Failed"}, 30, 0, id="failed pod"),
    ],
)
def test_pod_deletion_grace_period(spec, status, asked, expected):
    assert PODS.grace(pod(**spec) | {"status": status}, asked) == expected


def test_status_update_keeps_unknown_generations_and_qos_class():
    condition = {"type": "Ready", "status": "False", "observedGeneration": 4}
    old = pod() | {"status": {"qosClass": "Burstable", "observedGeneration": 4, "conditions": [condition]}}
    new = pod() | {
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "New"}]}
    }
    PODS.prepare_update["status"](new, old, request())
    assert new["status"] == {
        "phase": "Running",
        "qosClass": "Burstable",
        "observedGeneration": 4,
        "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 4}, {"type": "New"}],
    }
    assert old["status"]["conditions"] == [condition]


def test_pod_update_resets_status():
    assert PODS.resets[MAIN] == (("status",),)


AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def test_match_label_keys_are_merged_into_selectors():
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["x"]}
    without = {"topologyKey": "zone", "matchLabelKeys": ["app"]}
    tree = pod(
        affinity={"podAffinity": {AFFINITY: [term, without]}},
        topologySpreadConstraints=[term | {"mismatchLabelKeys": ["none"]}],
    )
    tree["metadata"]["labels"] = {"app": "web", "x": "1"}
    spec = prepared_pod(tree)["spec"]
    own = {"key": "app", "operator": "In", "values": ["web"]}
    other = {"key": "x", "operator": "NotIn", "values": ["1"]}
    first, second = spec["affinity"]["podAffinity"][AFFINITY]
    assert first["labelSelector"] == {"matchExpressions": [own, other]}
    assert second == without
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {"matchExpressions": [own]}
    assert term["labelSelector"] == {}


@pytest.mark.parametrize(
    ("value", "of_pod", "profile", "warned"),
    [
        pytest.param("runtime/default", None, {"type": "RuntimeDefault"}, True, id="the runtime's"),
        pytest.param("unconfined", None, {"type": "Unconfined"}, True, id="none"),
        pytest.param("localhost/p", None, {"type": "Localhost", "localhostProfile": "p"}, True, id="a file"),
        pytest.param("rubbish", None, None, True, id="not a profile"),
        pytest.param("runtime/default", {"type": "RuntimeDefault"}, None, False, id="security context set"),
    ],
)
def test_apparmor_annotations_become_fields(value, of_pod, profile, warned):
    tree = pod(securityContext={"appArmorProfile": of_pod} if of_pod else {})
    tree["metadata"]["annotations"] = {f"{APPARMOR_ANNOTATION_PREFIX}c": value}
    warnings = []
    context = prepared_pod(tree, warnings)["spec"]["containers"][0].get("securityContext", {})
    assert context.get("appArmorProfile") == profile
    assert bool(warnings) == warned


def test_apparmor_field_overrides_annotation():
    context = {"appArmorProfile": {"type": "Unconfined"}}
    tree = pod(containers=[{"name": "c", "securityContext": context}])
    tree["metadata"]["annotations"] = {f"{APPARMOR_ANNOTATION_PREFIX}c": "runtime/default"}
    assert prepared_pod(tree)["spec"]["containers"][0]["securityContext"] == context


CLAIM_STATUSES = {
    "resourceClaimStatuses": [{"name": "a"}],
    "extendedResourceClaimStatus": {"resourceClaimName": "b"},
}


def test_status_update_keeps_claims_that_a_client_drops_since_1_37():
    old = pod() | {"status": {"phase": "Running"} | CLAIM_STATUSES}
    new, older = (pod() | {"status": {"phase": "Running"}} for _ in range(2))
    PODS.prepare_update["status"](new, old, request())
    OLDER_STRATEGY.prepare_update["status"](older, old, request())
    assert new["status"] == {"phase": "Running"} | CLAIM_STATUSES
    assert older["status"] == {"phase": "Running"}


def test_status_update_with_empty_list_removes_claims():
    new = pod() | {"status": {"resourceClaimStatuses": []}}
    PODS.prepare_update["status"](new, pod() | {"status": CLAIM_STATUSES}, request())
    assert new["status"]["resourceClaimStatuses"] == []


@pytest.mark.parametrize("subresource", [MAIN, "resize"])
def test_update_without_pod_level_resources_keeps_them(subresource):
    resources = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
    new = pod()
    PODS.prepare_update[subresource](new, pod(resources=resources), request())
    assert new["spec"]["resources"] == resources


def test_resize_completes_pod_level_resources_without_changing_shared_ones():
    resources = {"requests": {"cpu": "1"}}
    new = pod(containers=[{"name": "c", "resources": {"limits": {"cpu": "2"}}}], resources=resources)
    PODS.prepare_update["resize"](new, pod(), request())
    assert new["spec"]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    assert resources == {"requests": {"cpu": "1"}}


def test_pod_level_limits_count_for_qos_class_of_new_pod():
    limits = {"cpu": "1", "memory": "1Gi"}
    containers = [{"name": "c", "resources": {"limits": limits, "requests": limits}}]
    prepared = prepared_pod(pod(containers=containers, resources={"requests": {"cpu": "1"}}))
    assert prepared["spec"]["resources"] == {"limits": limits, "requests": limits}
    assert prepared["status"]["qosClass"] == "Guaranteed"


def test_annotations_of_init_containers_are_dropped():
    tree = pod()
    tree["metadata"]["annotations"] = {"pod.beta.kubernetes.io/init-containers": "[]", "a": "b"}
    assert prepared_pod(tree)["metadata"] == {"name": "p", "annotations": {"a": "b"}}
