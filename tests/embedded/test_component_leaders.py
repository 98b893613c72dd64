"""The static pods of kube-scheduler and kube-controller-manager decide whether pods are scheduled and Deployments reconciled."""

import pytest

from mockube import Cluster
from mockube.container_runtime.control_plane_flags import flag_problem
from tests.support.node_shell import on_node

SYSTEM = {"namespace": "kube-system"}
FOLDER = "/etc/kubernetes/manifests"
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: nginx}]}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx}]}
"""


def holder(cluster, lease):
    return cluster.get("Lease", lease, **SYSTEM)["spec"]["holderIdentity"]


def is_running(tree):
    return tree["status"].get("phase") == "Running"


def has_restarted(tree):
    [status] = tree["status"]["containerStatuses"]
    return status["restartCount"] == 1 and "running" in status["state"]


def is_crashing(tree):
    [status] = tree["status"].get("containerStatuses") or [{"state": {}}]
    return status["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"


def wait_for_end(cluster, program, node="control-plane-1"):
    cluster.wait_gone("Pod", f"{program}-{node}", **SYSTEM)


@pytest.fixture
def cluster():
    with Cluster(profile="kubeadm", nodes=1) as cluster:
        yield cluster


def test_pods_are_scheduled_only_while_the_static_pod_of_the_scheduler_runs(cluster):
    assert holder(cluster, "kube-scheduler").startswith("control-plane-1_")
    on_node(cluster, f"mv {FOLDER}/kube-scheduler.yaml /root/")
    wait_for_end(cluster, "kube-scheduler")
    assert holder(cluster, "kube-scheduler") == ""  # kube-scheduler releases its lease
    cluster.apply(POD)
    cluster.advance(60)
    pod = cluster.get("Pod", "web")
    assert (pod["status"]["phase"], pod["spec"].get("nodeName")) == ("Pending", None)
    assert "conditions" not in pod["status"]  # nobody has decided that it cannot be scheduled
    on_node(cluster, f"mv /root/kube-scheduler.yaml {FOLDER}/")
    cluster.wait("Pod", "web", is_running)


def test_deployments_are_reconciled_only_while_the_static_pod_of_the_controller_manager_runs(cluster):
    first = holder(cluster, "kube-controller-manager")
    on_node(cluster, f"mv {FOLDER}/kube-controller-manager.yaml /root/")
    wait_for_end(cluster, "kube-controller-manager")
    assert holder(cluster, "kube-controller-manager") == first  # kube-controller-manager does not
    cluster.apply(DEPLOYMENT)
    cluster.advance(60)
    assert cluster.list("ReplicaSet") == []
    on_node(cluster, f"mv /root/kube-controller-manager.yaml {FOLDER}/")
    cluster.wait("Deployment", "web", lambda tree: tree["status"].get("readyReplicas") == 1)
    assert holder(cluster, "kube-controller-manager") != first


def test_another_control_plane_takes_over_when_the_lease_has_expired():
    with Cluster(profile="kubeadm", nodes=1, control_planes=3) as cluster:
        for program in ("kube-controller-manager", "kube-scheduler"):
            node = holder(cluster, program).partition("_")[0]
            on_node(cluster, f"mv {FOLDER}/{program}.yaml /root/", node)
            wait_for_end(cluster, program, node)
        cluster.apply(DEPLOYMENT)
        cluster.advance(20)
        cluster.wait("Deployment", "web", lambda tree: tree["status"].get("readyReplicas") == 1)
        assert holder(cluster, "kube-controller-manager").partition("_")[0] != node


def test_stopped_kubelet_leaves_the_scheduler_at_work(cluster):
    on_node(cluster, "systemctl stop kubelet")
    cluster.apply(POD)
    cluster.wait("Pod", "web", is_running)


def test_container_that_is_stopped_leads_again_when_it_has_restarted(cluster):
    first = holder(cluster, "kube-scheduler")
    on_node(cluster, "crictl stop $(crictl ps -q --name kube-scheduler)")
    cluster.wait("Pod", "kube-scheduler-control-plane-1", has_restarted, **SYSTEM)
    cluster.apply(POD)
    cluster.wait("Pod", "web", is_running)
    assert holder(cluster, "kube-scheduler") != first


def test_wrong_flag_ends_the_program_in_its_own_words(cluster):
    manifest = f"{FOLDER}/kube-scheduler.yaml"
    on_node(cluster, f"sed -i 's/--leader-elect=true/--leader-elected=true/' {manifest}")
    pod = cluster.wait("Pod", "kube-scheduler-control-plane-1", is_crashing, **SYSTEM)
    [status] = pod["status"]["containerStatuses"]
    assert status["lastState"]["terminated"]["exitCode"] == 1
    log = cluster.logs("kube-scheduler-control-plane-1", previous=True, **SYSTEM)
    assert log == "Error: unknown flag: --leader-elected\n"
    cluster.apply(POD)
    cluster.advance(60)
    assert cluster.get("Pod", "web")["status"]["phase"] == "Pending"
    on_node(cluster, f"sed -i 's/--leader-elected=true/--leader-elect=true/' {manifest}")
    cluster.wait("Pod", "web", is_running)
    assert "unknown flag" not in cluster.logs("kube-scheduler-control-plane-1", **SYSTEM)


def test_manifests_have_only_flags_of_their_programs(cluster):
    for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"):
        pod = cluster.get("Pod", f"{program}-control-plane-1", **SYSTEM)
        assert flag_problem(pod["spec"]["containers"][0]["command"]) is None
