"""A rewind while controllers run: what was deleted is there again, and no controller removes it."""

import pytest

from mockube import Cluster

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""
KINDS = ("deployment", "replicaset", "pod")


def identities(cluster):
    found = [cluster.list(kind) for kind in KINDS]
    return {(each["metadata"]["name"], each["metadata"]["uid"]) for trees in found for each in trees}


@pytest.mark.parametrize("times", [1, 2])
def test_deleted_deployment_is_back_with_its_replica_set_and_pods(times):
    with Cluster(nodes=1) as cluster:
        cluster.apply(WEB)
        ready = cluster.wait("deployment/web", "Available")
        before = identities(cluster)
        for _ in range(times):
            cluster.delete("deployment", "web")
            cluster.advance(60)
            assert identities(cluster) == set()
            cluster.rewind(ready["metadata"]["resourceVersion"])
            cluster.advance(60)
            assert identities(cluster) == before


DATABASE = """
{apiVersion: v1, kind: Pod, metadata: {name: db, labels: {app: db}}, spec: {containers: [{name: db, image: nginx}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {selector: {app: db}, ports: [{port: 80}]}}
"""
CLIENT = """
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  containers:
  - {name: client, image: busybox, command: [sh, -c, "while nc -z -w 2 db 80; do sleep 5; done; exit 1"]}
"""
CONTROL = "control.mockube.dev/v1alpha1"


def restarts(cluster):
    status = cluster.get("pod", "client")["status"]["containerStatuses"][0]
    return status["restartCount"] if status["ready"] else None


@pytest.mark.parametrize("is_forked", [False, True])
def test_container_that_has_crashed_since_runs_again(is_forked):
    with Cluster(nodes=1) as cluster:
        cluster.apply(DATABASE)
        cluster.wait("pod/db", "Ready")
        cluster.apply(CLIENT)
        cluster.wait("pod/client", "Ready")
        cluster.create({"apiVersion": CONTROL, "kind": "Mark", "metadata": {"name": "good"}})
        cluster.delete("service", "db")
        cluster.advance(120)
        assert restarts(cluster) is None
        rewound = cluster.fork() if is_forked else cluster
        rewound.rewind("good")
        rewound.advance(20)
        assert restarts(rewound) > 3
        rewound.advance(600)
        assert restarts(rewound) > 3


def test_mark_and_writes_before_an_advance_are_in_the_history():
    with Cluster(nodes=1) as cluster:
        (mark,) = cluster.create({"apiVersion": CONTROL, "kind": "Mark", "metadata": {"name": "before"}})
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
        cluster.advance(3600)
        (change,) = cluster.changes("configmap", "kept")
        assert change["spec"]["revision"] > mark["spec"]["revision"]
        cluster.rewind("before")
        assert "kept" not in [each["metadata"]["name"] for each in cluster.list("configmap")]


def test_all_changes_are_returned_of_which_a_list_has_the_newest():
    with Cluster(nodes=0, flags=["--control-changes=2"]) as cluster:
        maps = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"n{number}"}}
            for number in range(5)
        ]
        cluster.apply(maps)
        changes = cluster.changes("configmap", namespace="default", user="kubernetes-admin")
        assert [each["spec"]["object"]["name"] for each in changes] == [f"n{number}" for number in range(5)]


def test_object_that_is_posted_and_not_stored_is_created():
    with Cluster(nodes=1) as cluster:
        cluster.apply(DATABASE)
        cluster.wait("pod/db", "Ready")
        named = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "db"}
        (answer,) = cluster.create({"apiVersion": CONTROL, "kind": "Explanation", "spec": {"object": named}})
        assert answer["status"]["state"] == "NoProblem"
