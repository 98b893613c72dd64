"""Programs that enumerate all groups do not notice the control group: they send no request for it, and its objects stay."""

import os
import shutil
import subprocess

import pytest

from mockube import Cluster
from tests.support.processes import go_programs, helm_binary, kubectl_binaries
from tests.support.processes.kubectl_binaries import Kubectl
from tools.packages import ROOT

CHART = ROOT / "examples/helm/chart"
GROUP = "control.mockube.dev"
FAULT = {
    "apiVersion": f"{GROUP}/v1alpha1",
    "kind": "Fault",
    "metadata": {"name": "kept", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
    "spec": {"match": {"path": "/none"}, "cut": {"when": "before"}},
}
MARK = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Mark", "metadata": {"name": "kept"}}
OWNER = "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner, namespace: shop}}"

pytestmark = pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)


@pytest.fixture
def cluster():
    with Cluster(nodes=1) as started:
        started.create(FAULT)
        started.create(MARK)
        started.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
        yield started


@pytest.fixture
def kubectl(cluster, tmp_path):
    return Kubectl(
        kubectl_binaries.require_kubectl(shutil.which("kubectl")), cluster.kubeconfig, tmp_path / "home"
    )


@pytest.fixture
def requests_for_control(kubectl):
    """Return a function that returns the requests for the group since now. Those for Requests are not recorded."""

    def names():
        return kubectl("get", "requests", f"--field-selector=group={GROUP}", "-o", "name").split()

    before = names()
    return lambda: [name for name in names() if name not in before]


def assert_is_kept(cluster):
    assert "hits" not in cluster.get("Fault", "kept").get("status", {})
    cluster.get("Mark", "kept")


def test_helm_does_not_notice_control(cluster, requests_for_control, tmp_path, tmp_path_factory):
    program = helm_binary.helm(tmp_path_factory)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}

    def helm(*arguments):
        command = [program, *arguments, "--namespace=shop"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    helm("install", "shop", CHART, "--wait", "--timeout=60s")
    assert "deployed" in helm("list")
    helm("upgrade", "shop", CHART, "--wait", "--timeout=60s", "--set=replicas=2")
    helm("rollback", "shop", "1", "--wait", "--timeout=60s")
    helm("uninstall", "shop", "--wait", "--timeout=60s")
    assert "shop" not in helm("list", "--short")
    assert requests_for_control() == []
    assert_is_kept(cluster)


def test_controllers_do_not_notice_control(cluster, requests_for_control):
    """Garbage collector, quota and the deletion of namespaces discover all kinds; the time lets each do so again."""
    (owner,) = cluster.apply(OWNER)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "owned", "namespace": "shop", "ownerReferences": [reference]},
        }
    )
    cluster.apply(
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota, namespace: shop}, spec: {hard: {count/configmaps: '9'}}}"
    )
    cluster.wait("ResourceQuota", "quota", "jsonpath={.status.used.count/configmaps}=3", namespace="shop")
    cluster.advance(120)
    cluster.delete("ConfigMap", "owner", namespace="shop")
    cluster.wait_gone("ConfigMap", "owned", namespace="shop")
    cluster.delete("Namespace", "shop")
    cluster.wait_gone("Namespace", "shop")
    cluster.advance(600)
    assert requests_for_control() == []
    assert_is_kept(cluster)


def test_kubectl_all_does_not_notice_control(cluster, kubectl, requests_for_control):
    assert GROUP not in kubectl("get", "all", "--all-namespaces", "-o", "name")
    kubectl("delete", "all", "--all", "--all-namespaces")
    assert requests_for_control() == []
    assert_is_kept(cluster)


def test_kubectl_finds_no_kinds_of_control_to_delete(kubectl):
    """What can be listed and deleted is what programs delete that clean up."""
    assert f"faults.{GROUP}" in kubectl("api-resources", "-o", "name").split()
    names = kubectl("api-resources", "--verbs=list,delete", "-o", "name").split()
    assert "configmaps" in names
    assert not [name for name in names if name.endswith(GROUP)]
