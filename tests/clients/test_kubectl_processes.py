"""kubectl on a pod whose container is a process, with the oldest and newest installed kubectl."""

import re
import subprocess
import urllib.request

import pytest

from mockube import Cluster
from tests.support.process_pods import IMAGES
from tests.support.processes import kubectl_binaries
from tests.support.processes.acknowledged_writes import until
from tests.support.processes.kubectl_binaries import Kubectl

pytestmark = pytest.mark.timeout(120)
VERSIONS = [one for one in kubectl_binaries.binaries() if one.id in ("none", "kubectl.1.27", "kubectl.1.33")]
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: example.org/server, env: [{name: WORD, value: hello}]}]}
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        started.apply(POD)
        started.wait("Pod", "web", "Ready")
        yield started


@pytest.mark.parametrize("binary", VERSIONS)
def test_kubectl_logs_exec_and_port_forward_reach_process(cluster, binary, tmp_path):
    kubectl = Kubectl(kubectl_binaries.require_kubectl(binary), cluster.kubeconfig, tmp_path)
    until(
        lambda: kubectl("logs", "web") == "serving\n", "its log"
    )  # the pod is ready before the process has written its log
    assert kubectl("exec", "-i", "web", "--", "sh", "-c", "echo $WORD; cat", stdin="typed") == "hello\ntyped"
    failed = kubectl.attempt("exec", "web", "--", "sh", "-c", "exit 7")
    assert failed.returncode == 7
    (tmp_path / "sent").write_text("content")
    kubectl("cp", str(tmp_path / "sent"), "web:/tmp/received")
    assert kubectl("exec", "web", "--", "cat", "/tmp/received") == "content"
    kubectl("cp", "web:/tmp/received", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "content"
    forward = [str(binary), "--kubeconfig", str(cluster.kubeconfig), "port-forward", "pod/web", ":8080"]
    with subprocess.Popen(forward, stdout=subprocess.PIPE, text=True) as forwarding:
        port = re.search(r"127\.0\.0\.1:(\d+)", forwarding.stdout.readline())[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == b"served\n"
        forwarding.kill()
