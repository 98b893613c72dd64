"""Changes and refusals by built-in admission plugins, over HTTP."""

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.server import apiserver

CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


def pod(**spec):
    containers = [{"name": "c", "image": "nginx"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers} | spec}


async def refusal(client, path, body):
    answer = await client.post(path, body)
    assert answer.status == 403, answer.body
    return answer.body["message"].partition(" is forbidden: ")[2]


# --- NamespaceLifecycle


async def test_create_in_missing_namespace_is_not_found(client):
    answer = await client.post("/api/v1/namespaces/none/configmaps", {"metadata": {"name": "a"}})
    assert (answer.status, answer.body["message"]) == (404, 'namespaces "none" not found')


async def test_default_namespace_cannot_be_deleted(client):
    answer = await client.delete("/api/v1/namespaces/default")
    assert answer.status == 403
    assert answer.body["message"].endswith("this namespace may not be deleted")


# --- Priority

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_pod_priority_is_that_of_its_class(client):
    await client.post(CLASSES, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"})
    spec = (await client.post(PODS, pod(priorityClassName="high"))).body["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


async def test_default_priority_class_applies_to_pods_without_class(client):
    await client.post(CLASSES, {"metadata": {"name": "usual"}, "value": 3, "globalDefault": True})
    spec = (await client.post(PODS, pod())).body["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 3)
    second = {"metadata": {"name": "second"}, "value": 4, "globalDefault": True}
    assert await refusal(client, CLASSES, second) == (
        "PriorityClass usual is already marked as default. Only one default can exist"
    )


async def test_system_priority_classes_cannot_be_deleted(client):
    await client.post(CLASSES, {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000})
    answer = await client.delete(f"{CLASSES}/system-node-critical")
    assert answer.status == 403
    assert answer.body["message"] == (
        'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: '
        "this is a system priority class and cannot be deleted"
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"priorityClassName": "none"}, "no PriorityClass with name none was found", id="no class"
        ),
        pytest.param(
            {"priority": 9},
            "the integer value of priority (9) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
            id="another value",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="another policy",
        ),
    ],
)
async def test_pod_with_differing_priority_is_refused(client, spec, message):
    assert await refusal(client, PODS, pod(**spec)) == message


# --- DefaultTolerationSeconds, TaintNodesByCondition


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], ["not-ready", "unreachable"], id="without tolerations"),
        pytest.param([{"operator": "Exists"}], [""], id="toleration of all taints"),
        pytest.param(
            [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
            ["not-ready", "unreachable"],
            id="one toleration",
        ),
    ],
)
async def test_default_tolerations_are_added_to_pod(client, tolerations, expected):
    made = (await client.post(PODS, pod(tolerations=tolerations))).body["spec"]["tolerations"]
    assert [one.get("key", "").rpartition("/")[2] for one in made] == expected


async def test_default_toleration_seconds_follow_flags():
    flags = "--default-not-ready-toleration-seconds=5", "--default-unreachable-toleration-seconds=7"
    async with apiserver.running(*flags) as client:
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        tolerations = (await client.post(PODS, pod())).body["spec"]["tolerations"]
    assert [(one["key"].rpartition("/")[2], one["tolerationSeconds"]) for one in tolerations] == [
        ("not-ready", 5),
        ("unreachable", 7),
    ]


async def test_new_node_gets_not_ready_taint(client):
    created = await client.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    assert created.body["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


# --- storage

CLAIMS = f"{CORE}/persistentvolumeclaims"
STORAGE = "/apis/storage.k8s.io/v1/storageclasses"


def claim(size="1Gi", **spec):
    resources = {"requests": {"storage": size}}
    return {
        "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources} | spec,
    }


def storage_class(name, *, default=False, **rest):
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {"metadata": {"name": name, "annotations": annotations}, "provisioner": "x"} | rest


async def test_claim_gets_default_storage_class(client):
    for one in (storage_class("a"), storage_class("c", default=True), storage_class("b", default=True)):
        await client.post(STORAGE, one)
    created = (await client.post(CLAIMS, claim())).body
    # Of two classes of the same age, the first by name.
    assert created["spec"]["storageClassName"] == "b"
    assert created["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


async def test_claim_with_empty_class_gets_none(client):
    await client.post(STORAGE, storage_class("a", default=True))
    created = (await client.post(CLAIMS, claim(storageClassName=""))).body
    assert created["spec"]["storageClassName"] == ""


@pytest.mark.parametrize(
    ("grows", "status"),
    [
        pytest.param(False, 403, id="class without expansion"),
        pytest.param(True, 200, id="class with expansion"),
    ],
)
async def test_claim_resize_needs_expandable_class(client, grows, status):
    await client.post(STORAGE, storage_class("a", allowVolumeExpansion=grows))
    await client.post(CLAIMS, claim(storageClassName="a", volumeName="v"))
    await client.patch(f"{CLAIMS}/c/status", {"status": {"phase": "Bound"}})
    answer = await client.patch(f"{CLAIMS}/c", {"spec": claim("2Gi")["spec"]})
    assert answer.status == status, answer.body
    assert grows or "only dynamically provisioned pvc can be resized" in answer.body["message"]


# --- DefaultIngressClass

INGRESSES = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"


async def test_ingress_gets_default_class(client):
    annotations = {"ingressclass.kubernetes.io/is-default-class": "true"}
    ingress_class = {"metadata": {"name": "a", "annotations": annotations}, "spec": {"controller": "x.io/y"}}
    await client.post("/apis/networking.k8s.io/v1/ingressclasses", ingress_class)
    ingress = {
        "metadata": {"name": "i"},
        "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
    }
    assert (await client.post(INGRESSES, ingress)).body["spec"]["ingressClassName"] == "a"


# --- RuntimeClass

RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"
RUNTIME = {
    "metadata": {"name": "r"},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "t", "operator": "Exists"}]},
}


async def test_runtime_class_sets_overhead_and_scheduling(client):
    await client.post(RUNTIMES, RUNTIME)
    spec = (await client.post(PODS, pod(runtimeClassName="r"))).body["spec"]
    assert (spec["overhead"], spec["nodeSelector"]) == ({"cpu": "250m"}, {"a": "b"})
    assert {"key": "t", "operator": "Exists"} in spec["tolerations"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param({"runtimeClassName": "none"}, 'pod rejected: RuntimeClass "none" not found', id="none"),
        pytest.param(
            {"runtimeClassName": "r", "overhead": {"cpu": "1"}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead without class",
        ),
        pytest.param(
            {"overhead": {}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="an empty overhead",
        ),
        pytest.param(
            {"runtimeClassName": "r", "nodeSelector": {"a": "c"}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c",
            id="other node selector",
        ),
    ],
)
async def test_pod_contradicting_runtime_class_is_refused(client, spec, message):
    await client.post(RUNTIMES, RUNTIME)
    assert await refusal(client, PODS, pod(**spec)) == message


# --- CertificateSubjectRestriction

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def signing_request(organization):
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)])
    request = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    pem = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
    spec = {"request": pem, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    return {"metadata": {"name": "r"}, "spec": spec}


async def test_csr_for_system_masters_is_refused(client):
    assert await refusal(client, REQUESTS, signing_request("system:masters")) == (
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    )
    created = (await client.post(REQUESTS, signing_request("users"))).body
    assert created["spec"]["username"] == "admin"


# --- LimitRanger

LIMITS = f"{CORE}/limitranges"


def limits(kind="Container", **limit):
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": kind, **limit}]}}


def container(name="c", requests=None, limits=None):
    return {"name": name, "image": "x", "resources": {"requests": requests or {}, "limits": limits or {}}}


async def test_limit_range_defaults_are_applied_and_annotated(client):
    await client.post(LIMITS, limits(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "1"}))
    containers = [container("a"), container("b", {"cpu": "500m"}, {"cpu": "1"})]
    created = (await client.post(PODS, pod(containers=containers))).body
    assert [one["resources"] for one in created["spec"]["containers"]] == [
        {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    ]
    assert created["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for container a; "
        "memory request for container b; memory limit for container b"
    )


@pytest.mark.parametrize(
    ("limit", "containers", "message"),
    [
        pytest.param(
            limits(min={"cpu": "100m"}),
            [container(requests={"cpu": "50m"})],
            "minimum cpu usage per Container is 100m, but request is 50m",
            id="below minimum",
        ),
        pytest.param(
            limits(maxLimitRequestRatio={"cpu": "2"}),
            [container(requests={"cpu": "100m"}, limits={"cpu": "500m"})],
            "cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000",
            id="ratio exceeded",
        ),
        pytest.param(
            limits("Pod", max={"cpu": "1"}),
            [container("a", limits={"cpu": "600m"}), container("b", limits={"cpu": "600m"})],
            "[maximum cpu usage per Pod is 1, but limit is 1200m]",
            id="pod maximum exceeded",
        ),
        pytest.param(
            limits("Pod", max={"memory": "1Gi"}),
            [container()],
            "maximum memory usage per Pod is 1Gi.  No limit is specified",
            id="no limits set",
        ),
    ],
)
async def test_request_beyond_limit_range_is_refused(client, limit, containers, message):
    await client.post(LIMITS, limit)
    found = await refusal(client, PODS, pod(containers=containers))
    assert found.strip("[]") == message.strip("[]")


async def test_limit_range_applies_to_claims(client):
    await client.post(LIMITS, limits("PersistentVolumeClaim", max={"storage": "1Gi"}))
    assert await refusal(client, CLAIMS, claim("2Gi")) == (
        "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    )


# --- administrative access to devices

DEVICE_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
NEEDS_LABEL = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"


def device_claim(**exactly):
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"} | exactly}
    return {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (DEVICE_CLAIMS, device_claim(adminAccess=True), "spec.devices.requests[0].adminAccess"),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
            {"metadata": {"name": "c"}, "spec": device_claim(adminAccess=True) | {"metadata": {}}},
            "spec.devices.requests[0].adminAccess",
        ),
    ],
)
async def test_device_admin_access_needs_namespace_label(client, path, body, field):
    refused = await client.post(path, body)
    (cause,) = refused.body["details"]["causes"]
    assert (refused.status, cause["field"]) == (422, field)
    assert cause["message"] == f"Forbidden: {NEEDS_LABEL}"
    labels = {"labels": {"resource.kubernetes.io/admin-access": "true"}}
    await client.patch(CORE, {"metadata": labels})
    assert (await client.post(path, body)).status == 201


async def test_allocation_with_admin_access_needs_namespace_label(client):
    await client.post(DEVICE_CLAIMS, device_claim())
    result = {"request": "r", "driver": "d.example.com", "pool": "p", "device": "d", "adminAccess": True}
    allocation = {"allocation": {"devices": {"results": [result]}}}
    refused = await client.patch(f"{DEVICE_CLAIMS}/c/status", {"status": allocation})
    assert refused.status == 422
    assert NEEDS_LABEL in refused.body["message"]
