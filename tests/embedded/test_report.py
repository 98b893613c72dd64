"""Reports of a running cluster: what they contain, and that a run with a seed has the same bytes."""

import asyncio
import re

import pytest

from mockube import Cluster
from mockube.client.kubeconfig import read
from mockube.failure import Missing
from mockube.report.recording import Subject
from mockube.report.writing import write_report
from tests.unit.mockube.report.test_page import data_of

OBJECTS = """
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: hunter2-very-secret}
---
apiVersion: v1
kind: Pod
metadata: {name: large}
spec:
  nodeSelector: {disk: ssd}
  containers: [{name: web, image: nginx}]
---
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: busybox
    command: [sh, -c, "echo the password is $PASSWORD; exit 3"]
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


def fail(cluster):
    cluster.apply(OBJECTS)
    cluster.wait("Pod", "crash", "jsonpath={.status.phase}=Failed")
    cluster.wait("Pod", "large", "PodScheduled=False")
    cluster.wait("Deployment", "web", "Available")
    cluster.scale("Deployment", "web", 0)


def write(cluster, path):
    asyncio.run(write_report(read(cluster.kubeconfig), path, Subject(title="a run")))
    return path.read_text()


def test_report_has_all_changes_and_no_values_of_secrets(tmp_path):
    # A list of Changes has only the newest ones: the report has all.
    with Cluster(flags=["--history=all", "--control-changes=20"]) as cluster:
        fail(cluster)
        text = write(cluster, tmp_path / "run.md")
        page = write(cluster, tmp_path / "run.html")
        json = write(cluster, tmp_path / "run.json")
    assert re.search(r"### `pod/large` in `default`\n\nnone of 3 nodes can take the pod: ", text)
    assert re.search(
        r"`kubernetes-admin \(mockube\)`, \d+ writes.*\n\n- .* `deployment/web` in `default`, patch/scale: `spec.replicas: 3 -> 0`",
        text,
    )
    assert "the password is **********" in text
    data = data_of(page)
    for content in (text, json, str(data)):
        assert "hunter2" not in content
    written = [(change["type"], change["object"]["name"]) for change in data["changes"]]
    assert written.count(("ADDED", "large")) == 1
    assert written.index(("ADDED", "node-1")) < written.index(("ADDED", "large"))
    assert len(written) > 100
    assert all(
        change["object"]["resource"] not in ("events", "leases.coordination.k8s.io")
        for change in data["changes"]
    )
    revisions = [change["revision"] for change in data["changes"]]
    assert revisions == sorted(revisions)
    assert {"nodes", "pods", "secrets", "deployments.apps"} <= data["objects"].keys()
    assert [log["lines"] for log in data["logs"]] == [["the password is **********"]]


def test_run_with_a_seed_has_the_same_bytes(tmp_path):
    pages = []
    for number in (1, 2):
        with Cluster(seed=7) as cluster:
            fail(cluster)
            pages.append(write(cluster, tmp_path / f"{number}.html"))
    assert pages[0] == pages[1]


def test_faults_are_in_the_report_and_do_not_prevent_it(tmp_path):
    with Cluster() as cluster:
        cluster.inject(status=503, verb="list", resource="pods", message="no pods today")
        with pytest.raises(Exception, match="no pods today"):
            cluster.list("Pod")
        path = tmp_path / "run.html"
        access = read(cluster.kubeconfig)
        asyncio.run(write_report(access, path, ends_faults=True))
    data = data_of(path.read_text())
    (fault,) = data["faults"]
    assert fault["spec"]["match"]["resource"] == "pods"
    assert data["summary"]["refused"][0]["fault"] == fault["metadata"]["name"]
    assert "pods" not in data["refused"]


def test_server_without_control_has_no_report(tmp_path):
    with Cluster(flags=["--control=off"]) as cluster, pytest.raises(Missing, match="has no control"):
        write(cluster, tmp_path / "run.md")
    assert not (tmp_path / "run.md").exists()
