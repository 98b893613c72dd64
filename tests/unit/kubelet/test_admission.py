"""Pod admission of the kubelet: which bound pods are rejected, the reasons, and the written status."""

from collections import Counter
from datetime import timedelta

import pytest

from mockube.apimachinery.meta import with_metadata, with_value
from mockube.client.cache.store import Change
from mockube.client.component_helpers.pod_requests import HostPort, amounts, host_ports, pod_requests
from mockube.client.podview import PodView
from mockube.kubelet.admitted_pods import AdmittedPods
from mockube.kubelet.pod_lifecycle.admission import NodeAllocation, PodRejection, admission_rejection, reject
from mockube.kubelet.step_effects import EmitEvent, PatchObject, Step
from tests.support.controllers.pods import START, container, patched, pod, scheduled

ALLOCATABLE = {
    "cpu": "4",
    "memory": "1Gi",
    "ephemeral-storage": "10Gi",
    "pods": "110",
    "hugepages-2Mi": "0",
    "example.com/gpu": "2",
}
NODE = {
    "metadata": {"name": "node-1", "labels": {"zone": "a", "kubernetes.io/os": "linux"}},
    "spec": {},
    "status": {"allocatable": ALLOCATABLE, "nodeInfo": {"operatingSystem": "linux"}},
}
SYSTEM_CRITICAL = 2_000_000_000
TAINTED = {**NODE, "spec": {"taints": [{"key": "broken", "value": "yes", "effect": "NoExecute"}]}}
CLOSED = {**NODE, "spec": {"taints": [{"key": "broken", "effect": "NoSchedule"}], "unschedulable": True}}


def container_requesting(**requests):
    names = {"gpu": "example.com/gpu", "licence": "example.com/licence", "huge": "hugepages-2Mi"}
    named = {names.get(name, name.replace("_", "-")): amount for name, amount in requests.items()}
    return container(resources={"requests": named})


def with_port(number, ip=None, protocol="TCP"):
    return container(
        ports=[
            {"containerPort": 80, "hostPort": number, "protocol": protocol, **({"hostIP": ip} if ip else {})}
        ]
    )


def with_sysctl(name, **spec):
    return pod(securityContext={"sysctls": [{"name": name, "value": "1"}]}, **spec)


def bound_with(operator, value):
    term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": [value]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return pod(affinity={"nodeAffinity": required})


def rejection(subject, *, node=NODE, used=None, pods=0, taken=(), allocatable=ALLOCATABLE):
    usage = NodeAllocation(amounts(allocatable), Counter(amounts(used)), pods, iter(taken))
    spec = subject["spec"]
    return admission_rejection(subject, node, pod_requests(spec), tuple(host_ports(spec)), usage)


def out_of_resource(name, requested, used, capacity):
    counts = f"requested: {requested}, used: {used}, capacity: {capacity}"
    return PodRejection(f"OutOf{name}", f"Node didn't have enough resource: {name}, {counts}")


@pytest.mark.parametrize(
    ("subject", "node_state", "expected"),
    [
        (
            pod(container_requesting(cpu="1500m")),
            {"used": {"cpu": "3"}},
            out_of_resource("cpu", 1500, 3000, 4000),
        ),
        (
            pod(container_requesting(memory="1Gi")),
            {"used": {"memory": "1"}},
            out_of_resource("memory", 2**30, 1, 2**30),
        ),
        (
            pod(container_requesting(ephemeral_storage="11Gi")),
            {},
            out_of_resource("ephemeral-storage", 11 * 2**30, 0, 10 * 2**30),
        ),
        (pod(), {"pods": 110}, out_of_resource("pods", 1, 110, 110)),
        (
            pod(container_requesting(gpu="2")),
            {"used": {"example.com/gpu": "1"}},
            out_of_resource("example.com/gpu", 2, 1, 2),
        ),
        (pod(container_requesting(huge="2Mi")), {}, out_of_resource("hugepages-2Mi", 2**21, 0, 0)),
        # The first of several reasons is reported: pods, then cpu, memory, storage, then others.
        (pod(container_requesting(memory="2Gi", cpu="5")), {}, out_of_resource("cpu", 5000, 0, 4000)),
        (pod(container_requesting(cpu="5")), {"pods": 110}, out_of_resource("pods", 1, 110, 110)),
        (
            pod(container_requesting(cpu="5"), nodeSelector={"zone": "b"}),
            {},
            out_of_resource("cpu", 5000, 0, 4000),
        ),
    ],
)
def test_pod_is_rejected_without_capacity(subject, node_state, expected):
    assert rejection(subject, **node_state) == expected


@pytest.mark.parametrize(
    ("subject", "node_state"),
    [
        pytest.param(pod(container_requesting(cpu="1")), {"used": {"cpu": "3"}}, id="exact fit"),
        pytest.param(pod(container_requesting(cpu="0")), {"used": {"cpu": "5"}}, id="no requests"),
        pytest.param(pod(container_requesting(licence="1")), {}, id="a resource of the cluster"),
        pytest.param(pod(container_requesting(cpu="9")), {"allocatable": {}}, id="node without allocatable"),
        pytest.param(pod(container_requesting(cpu="9"), priority=SYSTEM_CRITICAL), {}, id="a critical pod"),
    ],
)
def test_pod_is_admitted_with_capacity(subject, node_state):
    assert rejection(subject, **node_state) is None


AFFINITY = PodRejection(
    "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
)
PORTS = PodRejection(
    "NodePorts",
    "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
)
TAINT = PodRejection(
    "TaintToleration",
    "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
)
TOLERATED = [{"key": "broken", "operator": "Exists", "tolerationSeconds": 5}]
ANY = [HostPort("0.0.0.0", "TCP", 80)]
ONE = [HostPort("10.0.0.1", "TCP", 80), HostPort("10.0.0.2", "TCP", 81)]
TWO_PORTS = pod(with_port(79), with_port(80))


@pytest.mark.parametrize(
    ("subject", "node_state", "expected"),
    [
        (pod(nodeSelector={"zone": "b"}), {}, AFFINITY),
        (pod(nodeSelector={"zone": "a"}), {}, None),
        (bound_with("NotIn", "a"), {}, AFFINITY),
        (bound_with("In", "a"), {}, None),
        (pod(with_port(80)), {"taken": ANY}, PORTS),
        (pod(with_port(80), priority=SYSTEM_CRITICAL), {"taken": ANY}, PORTS),
        (pod(with_port(80, ip="10.0.0.1")), {"taken": ANY}, PORTS),
        (pod(with_port(80)), {"taken": ONE}, PORTS),
        (TWO_PORTS, {"taken": ONE}, PORTS),
        (pod(with_port(80, protocol="UDP")), {"taken": ANY}, None),
        (pod(with_port(81, ip="10.0.0.1")), {"taken": ONE}, None),
        (pod(with_port(80), nodeSelector={"zone": "b"}), {"taken": ANY}, AFFINITY),
        (pod(), {"node": TAINTED}, TAINT),
        (pod(with_port(80)), {"node": TAINTED, "taken": ANY}, PORTS),
        (pod(tolerations=TOLERATED), {"node": TAINTED}, None),
        (pod(), {"node": CLOSED}, None),
    ],
)
def test_admission_predicates(subject, node_state, expected):
    assert rejection(subject, **node_state) == expected


def forbidden(problem):
    return PodRejection("SysctlForbidden", f"forbidden sysctl: {problem}")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (with_sysctl("kernel.msgmax"), forbidden('"kernel.msgmax" not allowlisted')),
        (with_sysctl("net/core/somaxconn"), forbidden('"net.core.somaxconn" not allowlisted')),
        (with_sysctl("kernel.shm_rmid_forced"), None),
        (with_sysctl("net/ipv4/tcp_rmem"), None),
        (
            with_sysctl("kernel.shm_rmid_forced", hostIPC=True),
            forbidden('"kernel.shm_rmid_forced" not allowed with host IPC enabled'),
        ),
        (
            with_sysctl("net.ipv4.tcp_rmem", hostNetwork=True),
            forbidden('"net.ipv4.tcp_rmem" not allowed with host Net enabled'),
        ),
        (
            pod(labels={"kubernetes.io/os": "windows"}),
            PodRejection(
                "PodOSSelectorNodeLabelDoesNotMatch",
                "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
            ),
        ),
        (
            pod(os={"name": "windows"}),
            PodRejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"),
        ),
        (pod(os={"name": "linux"}, labels={"kubernetes.io/os": "linux"}), None),
    ],
)
def test_sysctls_and_operating_systems(subject, expected):
    assert rejection(subject) == expected


def test_node_of_other_os_admits_its_pods():
    node = {"metadata": {"name": "w"}, "status": {"nodeInfo": {"operatingSystem": "windows"}}}
    assert rejection(pod(os={"name": "windows"}), node=node) is None


def test_rejected_pod_is_failed_without_container_statuses():
    foreign = {**scheduled(), "type": "example.com/ready"}
    then = {"phase": "Pending", "qosClass": "Burstable", "conditions": [scheduled(), foreign]}
    subject = {**pod(), "status": then}
    event, write = reject(subject, PodRejection("OutOfcpu", "There is no room"), START).effects
    assert event == EmitEvent("Warning", "OutOfcpu", "There is no room")
    assert isinstance(write, PatchObject)
    assert write.body["metadata"] == {"uid": "uid-1"}
    assert patched(subject["status"], write.body["status"]) == {
        "conditions": [foreign],
        "message": "Pod was rejected: There is no room",
        "observedGeneration": 1,
        "phase": "Failed",
        "qosClass": "Burstable",
        "reason": "OutOfcpu",
        "startTime": "2030-01-01T00:00:00Z",
    }


# --- pods one after the other


class Pods:
    """The pods of one node, and its kubelet's admission of them."""

    def __init__(self):
        self.views = {}
        self.looked_up = 0
        self.admitted = AdmittedPods(self)

    def by_index(self, _, node):
        self.looked_up += 1
        return [one for one in self.views.values() if one.node == node]

    def set(self, uid, subject, status=None):
        seen = with_value(with_metadata(subject, uid=uid, name=uid), ("status",), status or {})
        old, new = self.views.get(uid), PodView.of(seen)
        self.views[uid] = new
        self.admitted.on_change(Change(old, new))
        return new

    def remove(self, uid):
        self.admitted.on_change(Change(self.views.pop(uid), None))

    def admits(self, uid, subject, status=None, node=NODE):
        return self.admitted.admit(self.set(uid, subject, status), node, START) is None


RUNNING = {"phase": "Running", "startTime": "2030-01-01T00:00:00Z"}
HALF = pod(container_requesting(cpu="2"), with_port(80))
OTHER = pod(container_requesting(cpu="3"))


def test_first_of_two_conflicting_pods_is_admitted():
    pods = Pods()
    assert pods.admits("a", HALF)
    assert pods.admits("a", HALF), "it was admitted, though its status is not seen yet"
    assert not pods.admits("b", OTHER)
    assert pods.looked_up == 1


def test_running_pods_count_from_first_admission():
    pods = Pods()
    pods.set("a", HALF, RUNNING)
    pods.set("b", OTHER, {**RUNNING, "phase": "Succeeded"})
    pods.set("c", OTHER)
    assert not pods.admits("d", OTHER)
    assert pods.admits("e", pod(container_requesting(cpu="2")))


@pytest.mark.parametrize("end", ["removed", "failed", "replaced"])
def test_ended_pod_frees_its_resources(end):
    pods = Pods()
    assert pods.admits("a", HALF)
    assert not pods.admits("b", HALF)
    if end == "removed":
        pods.remove("a")
    elif end == "failed":
        pods.set("a", HALF, {**RUNNING, "phase": "Failed"})
    else:
        other = PodView.of(with_metadata(HALF, uid="z"))
        pods.admitted.on_change(Change(pods.views.pop("a"), other))
    assert pods.admits("c", HALF)


def test_resized_pod_counts_allocated_resources():
    pods = Pods()
    larger = with_metadata(pod(container_requesting(cpu="4")), generation=2)
    given = {"name": "c", "allocatedResources": {"cpu": "1"}}
    assert pods.admits("a", HALF)
    pods.set("a", larger, {**RUNNING, "containerStatuses": [given]})
    assert pods.admits("b", OTHER)
    pods.remove("b")
    pods.set("a", larger, {**RUNNING, "containerStatuses": [{**given, "allocatedResources": {"cpu": "2"}}]})
    assert not pods.admits("b", OTHER)


def test_changed_allocatable_is_used():
    pods = Pods()
    small = with_value(NODE, ("status", "allocatable"), {**ALLOCATABLE, "cpu": "1"})
    assert not pods.admits("a", HALF, node=small)
    assert pods.admits("a", HALF)


def test_only_live_unadmitted_pods_are_evaluated():
    pods = Pods()
    huge = pod(container_requesting(cpu="40"))
    deleting = with_metadata(huge, deletionTimestamp="2030-01-01T00:00:00Z")
    mirror = with_metadata(huge, annotations={"kubernetes.io/config.mirror": "x"})
    assert pods.admits("a", huge, RUNNING)
    assert pods.admits("b", huge, {"phase": "Failed"})
    assert pods.admits("c", deleting)
    assert pods.admits("d", mirror)
    assert not pods.admits("e", huge)


def test_rejections_of_recreated_pods_are_rate_limited():
    pods = Pods()
    huge = pod(container_requesting(cpu="40"))
    first, second = (pods.set(uid, huge) for uid in ("a", "b"))
    soon = START + timedelta(milliseconds=40)
    assert pods.admitted.admit(first, NODE, START).effects
    assert pods.admitted.admit(second, NODE, START) == Step(requeue_at=soon)
    assert pods.admits("c", HALF), "others do not wait"
    assert pods.admitted.admit(second, NODE, soon).effects


def test_unreadable_pod_uses_no_resources():
    pods = Pods()
    pods.set("a", pod(container_requesting(cpu="many")), RUNNING)
    assert pods.admits("b", HALF)


def test_sums_of_deleted_node_are_dropped():
    pods = Pods()
    assert pods.admits("a", HALF)
    pods.admitted.forget_node("node-1")
    assert pods.admits("b", HALF)
    assert pods.looked_up == 2


@pytest.mark.parametrize("priority", [None, SYSTEM_CRITICAL])
def test_extended_resources_of_claim_need_no_capacity(priority):
    pods = Pods()
    implicit = "deviceclass.resource.kubernetes.io/gpu"
    spec = {} if priority is None else {"priority": priority}
    greedy = pod(container_requesting(gpu="3", **{implicit: "1"}), **spec)
    assert not pods.admits("a", greedy)
    mappings = [
        {"containerName": "c", "resourceName": name, "requestName": "r"}
        for name in ("example.com/gpu", implicit)
    ]
    claim = {"resourceClaimName": "x", "requestMappings": mappings}
    assert pods.admits("b", greedy, {"extendedResourceClaimStatus": claim})
    claim = {**claim, "requestMappings": mappings[1:]}
    assert not pods.admits("c", greedy, {"extendedResourceClaimStatus": claim})
