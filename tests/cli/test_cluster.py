"""`mockube.Cluster` in a program, as a block and in an event loop, with two real processes."""

import re
from pathlib import Path

import pytest

from apimachinery.status import NotFound
from mockube import Cluster
from mockube.cluster import NotStarted
from mockube.reach import Unknown
from tests.architecture.source import ROOT
from tests.support.process import tls, token

MANIFESTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
---
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: web, image: nginx}]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {colour: blue}
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2) as started:
        yield started


def test_what_is_applied_comes_to_be(cluster):
    applied = cluster.apply(MANIFESTS)
    assert [one["kind"] for one in applied] == ["Namespace", "Deployment", "ConfigMap"]
    assert applied[2]["metadata"]["namespace"] == "default"
    assert applied[2]["metadata"]["managedFields"][0]["operation"] == "Apply"
    ready = cluster.wait("Deployment", "web", "Available", namespace="shop")
    assert ready["status"]["observedGeneration"] == ready["metadata"]["generation"]


def test_a_file_is_applied_and_a_question_is_waited_for(cluster, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: asked}, data: {colour: red}}")
    cluster.apply(file)
    found = cluster.wait("configmaps", "asked", lambda tree: tree["data"]["colour"] == "red")
    assert found["metadata"]["name"] == "asked"


def test_what_does_not_come_is_not_waited_for_any_longer(cluster):
    with pytest.raises(TimeoutError):
        cluster.wait("Node", "node-1", "Enchanted", timeout=0.1)


def test_what_the_server_does_not_have_is_named(cluster):
    with pytest.raises(Unknown, match=r"^Unicorn\.magic$"):
        cluster.wait("Unicorn.magic", "one", "Ready")
    with pytest.raises(NotFound, match="nowhere"):
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}")


def test_its_kubeconfig_leads_to_it(cluster):
    assert token(cluster.kubeconfig)
    assert tls(cluster.kubeconfig).get_ca_certs()
    assert cluster.url in cluster.kubeconfig.read_text()


def test_what_the_readme_shows_runs(capsys):
    (program,) = re.findall(r"```python\n(from mockube.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("https://127.0.0.1:")


async def test_in_an_event_loop_it_is_awaited_and_leaves_nothing():
    async with Cluster(nodes=1) as cluster:
        folder = Path(cluster.kubeconfig).parent
        assert (await cluster.wait("Node", "node-1", "Ready"))["kind"] == "Node"
    assert not folder.exists()


def test_one_that_cannot_start_says_why_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(NotStarted, match="unrecognized arguments: --bogus"), Cluster(flags=["--bogus"]):
        pass
    assert list(tmp_path.iterdir()) == []
