"""Fields that the importer removes because another cluster set them."""

import pytest

from mockube.importing.cleaning import clean_object, reason_to_skip, status_of, without_assigned_fields


def object_of(api_version, kind, *, metadata=None, **more):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", **(metadata or {})}, **more}


def test_server_managed_metadata_is_removed():
    said = {
        "uid": "u",
        "resourceVersion": "1",
        "generation": 3,
        "creationTimestamp": "t",
        "managedFields": [{}],
        "ownerReferences": [{}],
        "selfLink": "s",
    }
    kept = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"], "generateName": "a-"}
    tree = object_of("v1", "ConfigMap", metadata=said | kept, data={"k": "v"})
    assert clean_object(tree, ()) == object_of("v1", "ConfigMap", metadata=kept, data={"k": "v"})


def test_pod_keeps_node_that_will_exist():
    pod = object_of(
        "v1", "Pod", spec={"nodeName": "n", "ephemeralContainers": [{}]}, status={"phase": "Running"}
    )
    assert clean_object(pod, {"n"})["spec"] == {"nodeName": "n"}
    assert status_of(pod, {"n"}) == {"phase": "Running"}
    assert clean_object(pod, ())["spec"] == {}
    assert status_of(pod, ()) is None


def test_node_is_marked_as_simulated():
    assert clean_object(object_of("v1", "Node"), ())["metadata"]["annotations"] == {
        "kwok.x-k8s.io/node": "fake"
    }


def test_bound_volume_keeps_claim_by_name():
    volume = object_of(
        "v1",
        "PersistentVolume",
        spec={"claimRef": {"name": "c", "namespace": "d", "uid": "u", "resourceVersion": "1"}},
    )
    assert clean_object(volume, ())["spec"] == {"claimRef": {"name": "c", "namespace": "d"}}
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "mine": "x"}
    claim = object_of(
        "v1", "PersistentVolumeClaim", metadata={"annotations": annotations}, spec={"volumeName": "v"}
    )
    assert clean_object(claim, ()) == object_of(
        "v1", "PersistentVolumeClaim", metadata={"annotations": {"mine": "x"}}, spec={"volumeName": "v"}
    )


def test_generated_job_selector_is_removed():
    labels = {"batch.kubernetes.io/controller-uid": "u", "controller-uid": "u", "job-name": "a", "mine": "x"}
    spec = {
        "selector": {"matchLabels": {"controller-uid": "u"}},
        "template": {"metadata": {"labels": labels}},
    }
    job = object_of("batch/v1", "Job", metadata={"labels": labels}, spec=spec)
    assert clean_object(job, ()) == object_of(
        "batch/v1",
        "Job",
        metadata={"labels": {"mine": "x"}},
        spec={"template": {"metadata": {"labels": {"mine": "x"}}}},
    )
    own = object_of("batch/v1", "Job", metadata={"labels": labels}, spec=spec | {"manualSelector": True})
    assert clean_object(own, ()) == own


def test_allocated_service_fields_are_removed():
    spec = {"clusterIP": "10.0.0.9", "clusterIPs": ["10.0.0.9"], "ports": [{"port": 80, "nodePort": 30000}]}
    assert without_assigned_fields(object_of("v1", "Service", spec=spec))["spec"] == {"ports": [{"port": 80}]}
    assert without_assigned_fields(object_of("v1", "Pod", spec={})) is None


@pytest.mark.parametrize("ports", [2, "x", {"a": 1}, [1, "x", None]])
def test_ports_of_wrong_types_are_sent_unchanged(ports):
    assert without_assigned_fields(object_of("v1", "Service", spec={"ports": ports}))["spec"] == {
        "ports": ports
    }


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        pytest.param(
            object_of("v1", "Pod", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"}),
            "it was being deleted",
            id="deleted",
        ),
        pytest.param(
            object_of("v1", "Service", metadata={"name": "kubernetes", "namespace": "default"}),
            "the server has its own",
            id="the server's service",
        ),
        pytest.param(
            object_of("coordination.k8s.io/v1", "Lease", metadata={"namespace": "kube-system"}),
            "it belongs to a process that runs elsewhere",
            id="a leader's lease",
        ),
        pytest.param(
            object_of("v1", "ConfigMap", metadata={"name": "kube-root-ca.crt", "namespace": "x"}),
            "a controller creates it",
            id="the root CA",
        ),
        pytest.param(
            object_of(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                metadata={
                    "labels": {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
                },
            ),
            "a controller creates it",
            id="a slice",
        ),
        pytest.param(object_of("v1", "Service", metadata={"namespace": "default"}), "", id="anything else"),
    ],
)
def test_skipped_object_has_reason(tree, why):
    assert reason_to_skip(tree) == why
