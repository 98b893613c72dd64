"""A changed ConfigMap or Secret reaches the volumes of a running container, but not its variables."""

import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube import Cluster

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OBJECTS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: COLOR, size: SIZE}
---
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {word: COLOR}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: c
      image: busybox
      command: [sh, -c, "sleep 3600"]
      env:
        - {name: COLOR, valueFrom: {configMapKeyRef: {name: settings, key: color}}}
        - {name: WORD, valueFrom: {secretKeyRef: {name: password, key: word}}}
      envFrom: [{prefix: S_, configMapRef: {name: settings}}]
      volumeMounts:
        - {name: settings, mountPath: /settings}
        - {name: settings, mountPath: /color, subPath: color}
        - {name: password, mountPath: /password}
  volumes:
    - {name: settings, configMap: {name: settings}}
    - {name: password, secret: {secretName: password}}
"""
SHOW = "echo $COLOR $WORD $S_size; cat /settings/color /color /password/word"


@pytest.fixture
def cluster():
    with Cluster(nodes=1) as started:
        yield started


def objects(color, size):
    return OBJECTS.replace("COLOR", color).replace("SIZE", size)


def shown(pods):
    command = ["sh", "-c", SHOW]
    return stream(pods.connect_get_namespaced_pod_exec, "reader", "default", command=command, stdout=True)


def test_change_reaches_volumes_and_not_variables(cluster):
    pods = official.CoreV1Api(cluster.kubernetes())
    cluster.apply(objects("blue", "small"))
    cluster.apply(POD)
    cluster.wait("Pod", "reader", "Ready")
    assert shown(pods) == "blue blue small\nblueblueblue"
    cluster.apply(objects("red", "large"))
    assert shown(pods) == "blue blue small\nredbluered"
    pods.delete_namespaced_pod("reader", "default", grace_period_seconds=0)
    cluster.wait_gone("Pod", "reader")
    cluster.apply(POD)
    cluster.wait("Pod", "reader", "Ready")
    assert shown(pods) == "red red large\nredredred"
