"""mockube's manager with the real API server, and the real manager and scheduler with mockube's."""

import orjson
import pytest

from mockube.cli.main import main
from tests.support.processes.kubectl_binaries import NO_KUBECTL, Kubectl, binaries
from tests.support.processes.process import ApiServerProcess, ManagerProcess
from tests.support.processes.real_kubernetes import (
    RealApiServer,
    RealManager,
    RealScheduler,
    folder,
    wait_ready,
    write_kubeconfig,
    write_tokens,
)
from tests.support.stores.etcd_server import EtcdServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OWN_NAMESPACE = "story"
OBJECTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: one}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c, image: one}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: sum}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: one, command: ["true"]}]}}
"""
DEVICES = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {extendedResourceName: example.com/gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: shared}
spec:
  driver: gpu.example.com
  allNodes: true
  pool: {name: shared, generation: 1, resourceSliceCount: 1}
  devices: [{name: g0}]
---
apiVersion: v1
kind: Pod
metadata: {name: gpu}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: one, resources: {limits: {example.com/gpu: 1}}}]
"""
CLONE_SET = """
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: one}]}}
"""
HAPPENS = {404, 409}
"""Response codes that controllers get when an object was changed or deleted concurrently."""


@pytest.fixture
def kubectl_of(tmp_path):
    """Return a function that creates a kubectl for the administrator of a server."""
    folder()
    found = [binary.values[0] for binary in binaries() if binary.values[0] is not None]
    if not found:
        pytest.skip(NO_KUBECTL)

    def kubectl_of(url, authority):
        return Kubectl(found[0], write_kubeconfig(tmp_path / "admin", url, authority, "admin"), tmp_path)

    return kubectl_of


def roll_out_and_scale(kubectl):
    """Create, roll out and scale workloads; kubectl waits for each step."""
    here = f"--namespace={OWN_NAMESPACE}"
    kubectl("create", "namespace", OWN_NAMESPACE)
    kubectl("apply", here, "-f", "-", stdin=OBJECTS)
    for workload in ("deployment/web", "statefulset/db"):
        kubectl("rollout", here, "status", workload, "--timeout=50s")
        kubectl("set", here, "image", workload, "c=two")
        kubectl("rollout", here, "status", workload, "--timeout=50s")
    kubectl("scale", here, "deployment/web", "--replicas=5")
    kubectl("wait", here, "deployment/web", "--for=jsonpath={.status.readyReplicas}=5", "--timeout=50s")
    kubectl("wait", here, "pdb/web", "--for=jsonpath={.status.disruptionsAllowed}=3", "--timeout=50s")


def use_device(kubectl):
    """Run a pod with a device for an extended resource, and delete it with its claim."""
    here = f"--namespace={OWN_NAMESPACE}"
    kubectl("apply", here, "-f", "-", stdin=DEVICES)
    kubectl("wait", here, "pod/gpu", "--for=condition=Ready", "--timeout=50s")
    name = "--output=jsonpath={.status.extendedResourceClaimStatus.resourceClaimName}"
    claim = f"resourceclaim/{kubectl('get', here, 'pod/gpu', name)}"
    device = "--output=jsonpath={.status.reservedFor[0].name} {.status.allocation.devices.results[*].device}"
    assert kubectl("get", here, claim, device) == "gpu g0"
    kubectl("delete", here, "pod/gpu")
    kubectl("wait", here, claim, "--for=delete", "--timeout=50s")


def delete_namespace(kubectl):
    kubectl("delete", "namespace", OWN_NAMESPACE, "--timeout=50s")


def failed_requests(audit):
    """Yield the manager's failed requests, except those that fail at any server."""
    for event in map(orjson.loads, audit.read_bytes().splitlines()):
        status = event.get("responseStatus", {})
        is_ours = event.get("userAgent", "").startswith("kube-controller-manager/")
        if is_ours and status.get("code", 200) >= 400 and status["code"] not in HAPPENS:
            causes = (status.get("details") or {}).get("causes") or ()
            if not any(cause["reason"] == "NamespaceTerminating" for cause in causes):
                yield event["verb"], event["requestURI"], status


@pytest.mark.parametrize("accounts", ["true", "false"])
def test_mockube_manager_works_with_real_apiserver(tmp_path, kubectl_of, accounts):
    """The real API server's roles allow upstream's controllers the requests they need, and no more."""
    with EtcdServer() as etcd, RealApiServer(tmp_path, etcd) as server:
        kubectl = kubectl_of(server.url, server.authority)
        wait_ready(server, kubectl)
        own = f"--use-service-account-credentials={accounts}"
        with ManagerProcess(tmp_path / "admin", "--simulate-nodes=3", own):
            roll_out_and_scale(kubectl)
            use_device(kubectl)
            delete_namespace(kubectl)
    assert not [*failed_requests(tmp_path / "audit")]


def test_real_manager_and_scheduler_work_with_mockube_apiserver(tmp_path, kubectl_of):
    certificates, tokens = tmp_path / "certificates", write_tokens(tmp_path / "tokens.csv")
    with ApiServerProcess(tmp_path, "--cert-dir", certificates, "--token-auth-file", tokens) as server:
        authority = certificates / "ca.crt"
        kubectl = kubectl_of(server.url, authority)
        manager, scheduler = (
            write_kubeconfig(tmp_path / user, server.url, authority, f"system:{user}")
            for user in ("kube-controller-manager", "kube-scheduler")
        )
        nodes = ("--controllers=simulated-nodes,simulated-pods", "--leader-elect=false", "--simulate-nodes=3")
        with (
            ManagerProcess(server.kubeconfig, *nodes),
            RealManager(tmp_path, manager) as manager,
            RealScheduler(scheduler),
        ):
            roll_out_and_scale(kubectl)
            use_device(kubectl)
            kubectl("apply", f"--namespace={OWN_NAMESPACE}", "-f", "-", stdin=JOB)
            kubectl("wait", f"--namespace={OWN_NAMESPACE}", "job/sum", "--for=condition=complete")
            delete_namespace(kubectl)
    assert not [line for line in manager.log if "Failed to watch" in line or "failed to list" in line]


def test_both_apiservers_work_alternately_over_one_etcd(tmp_path, kubectl_of):
    """Each server reads the other's objects: mockube writes JSON, the real server writes protobuf."""
    jsonpath = "--output=jsonpath={.items[*].metadata.name}"
    with EtcdServer() as etcd:
        certificates, tokens = tmp_path / "certificates", write_tokens(tmp_path / "tokens.csv")
        ours = f"--etcd-servers={etcd.url}", "--cert-dir", certificates, "--token-auth-file", tokens
        with ApiServerProcess(tmp_path, *ours) as server:
            kubectl = kubectl_of(server.url, certificates / "ca.crt")
            kubectl("create", "namespace", OWN_NAMESPACE)
            kubectl("apply", f"--namespace={OWN_NAMESPACE}", "-f", "-", stdin=OBJECTS)
        (tmp_path / "real").mkdir()
        with RealApiServer(tmp_path / "real", etcd) as server:
            kubectl = kubectl_of(server.url, server.authority)
            wait_ready(server, kubectl)
            assert kubectl("get", "deployments", f"--namespace={OWN_NAMESPACE}", jsonpath) == "web"
            kubectl("scale", "deployment/web", f"--namespace={OWN_NAMESPACE}", "--replicas=7")
            kubectl("create", "configmap", "theirs", f"--namespace={OWN_NAMESPACE}")
        with ApiServerProcess(tmp_path, *ours) as server:
            kubectl = kubectl_of(server.url, certificates / "ca.crt")
            assert "theirs" in kubectl("get", "configmaps", f"--namespace={OWN_NAMESPACE}", jsonpath)
            replicas = "--output=jsonpath={.spec.replicas}"
            assert kubectl("get", "deployment/web", f"--namespace={OWN_NAMESPACE}", replicas) == "7"


def test_mockube_manager_follows_real_apiserver(tmp_path, kubectl_of, capsys):
    """Its minor, and the pack whose definitions a client applies later; it makes added resources of a node allocatable."""
    with EtcdServer() as etcd, RealApiServer(tmp_path, etcd) as server:
        kubectl = kubectl_of(server.url, server.authority)
        wait_ready(server, kubectl)
        with ManagerProcess(tmp_path / "admin", "--simulate-nodes=1") as manager:
            version = orjson.loads(kubectl("get", "--raw=/version"))["gitVersion"]
            manager.wait_logged(f"as the API server, whose version is {version}")
            assert main(["crds", "kruise", "--without-conversion"]) == 0
            kubectl("apply", "-f", "-", stdin=capsys.readouterr().out)
            manager.wait_logged("Packs: kruise, as the API server")
            kubectl("wait", "crd/clonesets.apps.kruise.io", "--for=condition=Established", "--timeout=50s")
            kubectl("apply", "-f", "-", stdin=CLONE_SET)
            kubectl("wait", "cloneset/web", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=100s")
            dongles = '{"status": {"capacity": {"example.com/dongle": "4"}}}'
            kubectl("patch", "node/node-1", "--subresource=status", f"--patch={dongles}")
            kubectl("wait", "node/node-1", r"--for=jsonpath={.status.allocatable.example\.com/dongle}=4")
