"""The exit codes of commands that use ConfigMaps, Secrets and the pod's address are those of the values."""

from contextlib import closing

import orjson
import pytest
from kubernetes import client as official

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": "v"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}}
KEY = {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
ADDRESS = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
VOLUMES = [{"name": "m", "configMap": {"name": "m"}}, {"name": "e", "emptyDir": {}}]
MOUNTS = [{"name": "m", "mountPath": "/cfg"}, {"name": "e", "mountPath": "/data"}]


def container(name, script, **fields):
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], **fields}


def pod(name, main, *init, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [main],
            "initContainers": list(init),
            "volumes": VOLUMES,
            "restartPolicy": "Never",
            **spec,
        },
    }


@pytest.fixture(scope="module")
def cluster(module_cluster):
    module_cluster.apply(orjson.dumps(SECRET).decode())
    return module_cluster


def ends(cluster, name):
    done = cluster.wait("Pod", name, lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed"))
    return done["status"]["phase"]


def test_values_decide_exit_codes(cluster):
    pods = {
        "right": pod("right", container("c", 'test "$K" = v', env=[KEY])),
        "wrong": pod("wrong", container("c", 'test "$K" = w', env=[KEY])),
        "address": pod("address", container("c", 'test -n "$IP"', env=[ADDRESS])),
        "absent": pod(
            "absent",
            container("c", "! [ -f /cfg/none ] && ! cat /cfg/none && test -s /cfg/k", volumeMounts=MOUNTS),
        ),
        "waits": pod("waits", container("c", 'test "$(cat /cfg/k)" = v', volumeMounts=MOUNTS)),
        "init": pod(
            "init",
            container("c", 'test "$(cat /data/k)" = v', volumeMounts=MOUNTS[1:]),
            container("i", "cp /cfg/k /data/k", volumeMounts=MOUNTS),
        ),
    }
    for body in pods.values():
        cluster.apply(orjson.dumps(body).decode())
    cluster.apply(orjson.dumps(MAP).decode())
    phases = {name: ends(cluster, name) for name in pods}
    assert phases == {**dict.fromkeys(pods, "Succeeded"), "wrong": "Failed"}


def test_running_command_sees_changed_config_map(cluster):
    body = pod(
        "late", container("c", "until [ -f /cfg/late ]; do echo waiting; sleep 61; done", volumeMounts=MOUNTS)
    )
    cluster.apply(orjson.dumps({**MAP, "metadata": {"name": "m"}}).decode())
    cluster.apply(orjson.dumps(body).decode())
    cluster.wait("Pod", "late", lambda pod: pod["status"].get("phase") == "Running")
    read_log = official.CoreV1Api(cluster.kubernetes()).read_namespaced_pod_log
    with closing(read_log("late", "default", follow=True, _preload_content=False)) as log:
        assert next(log.stream(4096)) == b"waiting\n"
    cluster.apply(orjson.dumps({**MAP, "data": {"k": "v", "late": ""}}).decode())
    cluster.advance(61)
    assert ends(cluster, "late") == "Succeeded"


def test_running_command_sees_changed_labels_of_pod(cluster):
    script = "until grep -q new /info/labels; do echo waiting; sleep 61; done"
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    body = pod(
        "labels",
        container("c", script, volumeMounts=[{"name": "i", "mountPath": "/info"}]),
        volumes=[{"name": "i", "downwardAPI": {"items": [labels]}}],
    )
    cluster.apply(orjson.dumps(body).decode())
    cluster.wait("Pod", "labels", lambda pod: pod["status"].get("phase") == "Running")
    read_log = official.CoreV1Api(cluster.kubernetes()).read_namespaced_pod_log
    with closing(read_log("labels", "default", follow=True, _preload_content=False)) as log:
        assert next(log.stream(4096)) == b"waiting\n"
    changed = {"metadata": {"labels": {"new": "yes"}}}
    official.CoreV1Api(cluster.kubernetes()).patch_namespaced_pod("labels", "default", changed)
    cluster.advance(61)
    assert ends(cluster, "labels") == "Succeeded"


def test_service_with_unknown_value_runs(cluster):
    script = 'test "$K" = v || exit 1; sleep 100'
    body = pod("service", container("c", script, env=[KEY]), restartPolicy="Always")
    cluster.apply(orjson.dumps(body).decode())
    running = cluster.wait("Pod", "service", "Ready")
    assert running["status"]["containerStatuses"][0]["restartCount"] == 0
