"""helm installs a chart that brings an adapter's APIService, as those of KEDA, metrics-server and prometheus-adapter do."""

import os
import subprocess

import orjson
import pytest

from tests.support.processes import go_programs, helm_binary
from tests.support.processes.kubectl_binaries import Kubectl, binaries, require_kubectl
from tests.support.processes.process import ApiServerProcess

GROUPS = ("metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io")
CHART = "apiVersion: v2\nname: adapter\nversion: 1.0.0\n"
TEMPLATE = """
{{- range .Values.groups }}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.{{ . }}
  labels: {app.kubernetes.io/name: adapter}
spec:
  group: {{ . }}
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: adapter, namespace: {{ $.Release.Namespace }}, port: 443}
{{- end }}
---
apiVersion: v1
kind: Service
metadata: {name: adapter}
spec:
  ports: [{name: https, port: 443}]
"""


@pytest.fixture
def cluster(tmp_path):
    with ApiServerProcess(tmp_path, "--simulate-metrics") as running:
        yield running


@pytest.fixture
def helm(tmp_path_factory, cluster, tmp_path):
    """Return a function that runs helm with the cluster."""
    program = helm_binary.helm(tmp_path_factory)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KUBECONFIG": str(cluster.kubeconfig)}

    def run(*arguments):
        finished = subprocess.run(
            [program, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert finished.returncode == 0, finished.stderr
        return finished.stdout

    return run


@pytest.mark.timeout(go_programs.BUILD_SECONDS + 300)
@pytest.mark.parametrize("binary", binaries()[:1])
def test_chart_of_adapter_is_installed_takes_over_and_returns(binary, helm, cluster, tmp_path):
    kubectl = Kubectl(require_kubectl(binary), cluster.kubeconfig, tmp_path)
    chart = tmp_path / "adapter"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text(CHART)
    (chart / "values.yaml").write_text(orjson.dumps({"groups": GROUPS}).decode())
    (chart / "templates" / "adapter.yaml").write_text(TEMPLATE)
    nodes = "/apis/metrics.k8s.io/v1beta1/nodes"
    assert "NodeMetricsList" in kubectl("get", "--raw", nodes)
    assert "STATUS: deployed" in helm("install", "adapter", str(chart))
    refused = kubectl.attempt("get", "--raw", nodes)
    assert (refused.returncode, "currently unable to handle the request" in refused.stderr) == (1, True)
    names = kubectl("get", "apiservices", "-l", "app.kubernetes.io/name=adapter", "-o", "name").split()
    assert names == sorted(f"apiservice.apiregistration.k8s.io/v1beta1.{group}" for group in GROUPS)
    helm("upgrade", "adapter", str(chart))
    helm("uninstall", "adapter", "--wait")
    assert "NodeMetricsList" in kubectl("get", "--raw", nodes)
    assert "metrics" not in kubectl("get", "apiservices", "-o", "name")
