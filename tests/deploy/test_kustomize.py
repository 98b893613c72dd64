"""The Kubernetes manifests: rendered by kubectl, restricted, and deployed to a mockube cluster."""

import shutil

import pytest
import yaml

from mockube.apiserver.config import command_line
from mockube.controller_manager import catalog
from mockube.controller_manager import command_line as manager
from tests.support.processes.kubectl_binaries import NO_KUBECTL, Kubectl
from tests.support.processes.process import ROOT, ApiServerProcess, ManagerProcess

VARIANTS = ("base", "etcd")
SECRET = ("ca.crt", "ca.key", "sa.key", "admin.crt", "admin.key")


@pytest.fixture
def binary():
    return shutil.which("kubectl") or pytest.skip(NO_KUBECTL)


def folder(variant):
    return str(ROOT / "deploy" / "kustomize" / variant)


@pytest.fixture(params=VARIANTS)
def manifests(request, binary, tmp_path):
    kubectl = Kubectl(binary, tmp_path / "none", tmp_path)
    return list(yaml.safe_load_all(kubectl("kustomize", folder(request.param))))


def workloads(manifests):
    return [one for one in manifests if one["kind"] in ("Deployment", "StatefulSet")]


def containers(manifests):
    specs = [one["spec"]["template"]["spec"] for one in workloads(manifests)]
    return [one for spec in specs for one in (*spec.get("initContainers", ()), *spec["containers"])]


def test_pods_follow_restricted_standard_with_read_only_files(manifests):
    for one in workloads(manifests):
        context = one["spec"]["template"]["spec"]["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(manifests):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_containers_have_resource_limits_and_image_versions(manifests):
    for container in containers(manifests):
        assert container["resources"].keys() == {"requests", "limits"}
        assert container["image"].partition(":")[2] not in ("", "latest")


def test_kustomized_programs_accept_their_flags(manifests):
    flags = {
        container["args"][0]: container["args"][1:]
        for container in containers(manifests)
        if "args" in container
    }
    assert command_line.parse(flags["apiserver"], {}).ignored == ()
    assert manager.parse(flags["controller-manager"], {}, catalog.NAMES).ignored == ()


def test_selectors_match_labels_of_workloads(manifests):
    there = {
        one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"]
        for one in workloads(manifests)
    }
    services = [one["spec"]["selector"] for one in manifests if one["kind"] == "Service"]
    budgets = [
        one["spec"]["selector"]["matchLabels"] for one in manifests if one["kind"] == "PodDisruptionBudget"
    ]
    assert {one["app.kubernetes.io/name"] for one in (*services, *budgets)} == there


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_kustomization_starts_in_cluster(binary, tmp_path, variant):
    with (
        ApiServerProcess(tmp_path, f"--cert-dir={tmp_path / 'pki'}") as process,
        ManagerProcess(process.kubeconfig, "--simulate-nodes=2"),
    ):
        kubectl = Kubectl(binary, process.kubeconfig, tmp_path)
        kubectl("apply", "-k", folder(variant))
        files = [f"--from-file={tmp_path / 'pki' / name}" for name in SECRET]
        kubectl("create", "secret", "generic", "pki", "--namespace=mockube", *files)
        ready = ("rollout", "status", "--namespace=mockube", "--timeout=50s")
        kubectl(*ready, "deployment/apiserver")
        kubectl(*ready, "deployment/controller-manager")
        if variant == "etcd":
            kubectl(*ready, "statefulset/etcd")
        assert "unchanged" in kubectl("apply", "-k", folder(variant))
