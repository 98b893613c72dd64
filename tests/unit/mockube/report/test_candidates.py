"""Which objects `why` is asked about."""

import pytest

from mockube.report.candidates import candidates, unhealthy_containers
from tests.support.reports import tree_of

CERTIFICATES = "certificatesigningrequests.certificates.k8s.io"
PENDING = {"phase": "Pending"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def names(objects):
    return [(each.identity.name, [other.name for other in each.similar]) for each in candidates(objects)]


def test_healthy_objects_are_no_candidates():
    deployment = tree_of("Deployment", "web", replicas=0, status={})
    assert names({"pods": [tree_of("Pod", "a", status=READY)], "deployments.apps": [deployment]}) == []


def test_pods_of_one_owner_in_the_same_state_are_one_candidate():
    pods = [tree_of("Pod", name, owner="web", status=PENDING) for name in ("b", "a", "c")]
    failed = tree_of("Pod", "d", owner="web", status={"phase": "Failed", "reason": "Evicted"})
    alone = tree_of("Pod", "e", status=PENDING)
    assert names({"pods": [*pods, failed, alone]}) == [("a", ["b", "c"]), ("d", []), ("e", [])]


def test_owners_come_first_and_a_replica_set_of_an_unhealthy_deployment_not_at_all():
    objects = {
        "pods": [tree_of("Pod", "a-pod", owner="a-set", status=PENDING)],
        "replicasets.apps": [tree_of("ReplicaSet", "a-set", owner="web", replicas=1, status={})],
        "deployments.apps": [tree_of("Deployment", "web", replicas=1, status={})],
    }
    assert names(objects) == [("web", []), ("a-pod", [])]


def test_objects_of_the_cluster_come_last():
    pods = [
        tree_of("Pod", "a", namespace="kube-system", owner="x", status=PENDING),
        tree_of("Pod", "b", owner="y", status=PENDING),
        tree_of("Pod", "c", status=PENDING),
    ]
    node = tree_of("Node", "0", namespace="", status={"conditions": [{"type": "Ready", "status": "False"}]})
    assert names({"nodes": [node], "pods": pods}) == [("b", []), ("a", []), ("0", []), ("c", [])]


@pytest.mark.parametrize(
    ("resource", "kind", "fields"),
    [
        ("jobs.batch", "Job", {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}),
        ("persistentvolumeclaims", "PersistentVolumeClaim", {"status": PENDING}),
        ("services", "Service", {"selector": {"app": "web"}}),
        (
            "tasks.example.com",
            "Task",
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        ),
        ("tasks.example.com", "Task", {"status": {"conditions": [None]}}),
        ("deployments.apps", "Deployment", {"replicas": 2, "status": {"readyReplicas": 1}}),
        (
            "nodes",
            "Node",
            {"namespace": "", "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
        ),
        (
            "horizontalpodautoscalers.autoscaling",
            "HorizontalPodAutoscaler",
            {"status": {"conditions": [{"type": "ScalingActive", "status": "False"}]}},
        ),
        (CERTIFICATES, "CertificateSigningRequest", {"namespace": "", "status": {}}),
        (
            CERTIFICATES,
            "CertificateSigningRequest",
            {"namespace": "", "status": {"conditions": [{"type": "Approved", "status": "True"}]}},
        ),
    ],
)
def test_object_with_a_problem_is_a_candidate(resource, kind, fields):
    assert names({resource: [tree_of(kind, "a", **fields)]}) == [("a", [])]


@pytest.mark.parametrize(
    ("resource", "kind", "fields"),
    [
        ("jobs.batch", "Job", {"suspend": True, "status": {}}),
        ("services", "Service", {}),
        ("tasks.example.com", "Task", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        ("configmaps", "ConfigMap", {}),
        ("nodes", "Node", {"namespace": "", "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        (
            "horizontalpodautoscalers.autoscaling",
            "HorizontalPodAutoscaler",
            {"status": {"conditions": [{"type": "ScalingActive", "status": "True"}]}},
        ),
        (
            CERTIFICATES,
            "CertificateSigningRequest",
            {
                "namespace": "",
                "status": {"conditions": [{"type": "Approved", "status": "True"}], "certificate": "Y2VydA=="},
            },
        ),
    ],
)
def test_object_without_a_problem_is_none(resource, kind, fields):
    assert names({resource: [tree_of(kind, "a", **fields)]}) == []


def test_object_that_is_being_deleted_is_a_candidate():
    tree = tree_of("Pod", "a", status=READY)
    tree["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert names({"pods": [tree]}) == [("a", [])]


def test_logs_are_those_of_containers_that_failed_or_are_not_ready():
    statuses = [
        {"name": "crash", "state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 3}}},
        {"name": "slow", "state": {"running": {}}, "ready": False},
        {"name": "good", "state": {"running": {}}, "ready": True},
        {"name": "pulled", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
    ]
    init = [{"name": "init", "state": {"terminated": {"exitCode": 0}}, "ready": True}]
    pod = tree_of("Pod", "a", status={"initContainerStatuses": init, "containerStatuses": statuses})
    assert [*unhealthy_containers(pod)] == [("crash", True), ("slow", False)]


def endpoint_slice(name, *states):
    tree = tree_of("EndpointSlice", name)
    tree["metadata"]["labels"] = {"kubernetes.io/service-name": name}
    return {**tree, "endpoints": [{"conditions": state} for state in states]}


def test_services_with_endpoints_that_are_ready_are_no_candidates():
    services = [tree_of("Service", name, selector={"app": name}) for name in ("good", "old", "bad", "none")]
    slices = [
        endpoint_slice("good", {"ready": False}, {"ready": True}),
        endpoint_slice("old", {}),
        endpoint_slice("bad", {"ready": False}),
        endpoint_slice("none"),
    ]
    objects = {"services": services, "endpointslices.discovery.k8s.io": slices}
    assert names(objects) == [("bad", []), ("none", [])]


def test_service_with_a_port_that_no_endpoint_has_is_a_candidate():
    ports = [{"name": "web", "port": 80}, {"name": "admin", "port": 81}]
    services = [tree_of("Service", name, selector={"app": name}, ports=ports) for name in ("all", "half")]
    found = {"all": ports, "half": ports[:1]}
    slices = [{**endpoint_slice(name, {}), "ports": some} for name, some in found.items()]
    objects = {"services": services, "endpointslices.discovery.k8s.io": slices}
    assert names(objects) == [("half", [])]


def test_jobs_at_work_come_after_what_is_not_healthy():
    objects = {
        "jobs.batch": [
            tree_of("Job", "a", status={}),
            tree_of("Job", "z", status={"conditions": [{"type": "Failed", "status": "True"}]}),
        ],
        "pods": [tree_of("Pod", "b", namespace="kube-system", status=PENDING)],
    }
    assert names(objects) == [("z", []), ("b", []), ("a", [])]
