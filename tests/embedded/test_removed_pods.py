"""The run-times and the kubelets keep nothing of pods that have come and gone."""

import gc
import urllib.request

import pytest

from mockube import Cluster
from mockube.container_runtime.simulated.runtime import SimulatedRuntime
from mockube.kubelet.pods import SimulatedPods
from tests.support.kept_objects import places_of

PODS = """
{apiVersion: v1, kind: Pod, metadata: {name: server-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: nginx}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: configured-NUMBER}, spec: {terminationGracePeriodSeconds: 1,
  volumes: [{name: v, configMap: {name: pages}}],
  containers: [{name: c, image: nginx, volumeMounts: [{name: v, mountPath: /etc/nginx/conf.d}]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: redis-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: redis,
  readinessProbe: {exec: {command: [redis-cli, ping]}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: agnhost-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [
  {name: c, image: "registry.k8s.io/e2e-test-images/agnhost:2.53", args: [guestbook, --http-port, "8080"]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: script-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox,
  command: [sh, -c, "while sleep 1; do date >> /tmp/log; done"]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: client-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox,
  command: [sh, -c, "nslookup kubernetes; nc -l -p 9000 & wget -qO- http://nope; sleep 1000"]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: finished-NUMBER}, spec: {terminationGracePeriodSeconds: 1, restartPolicy: Never, containers: [{name: c, image: busybox,
  command: [sh, -c, "echo x > /tmp/x; exit 1"]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: restarted-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox, command: [sh, -c, "exit 1"]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: probed-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox,
  command: [sh, -c, "date > /tmp/ready; sleep 1000"],
  lifecycle: {postStart: {exec: {command: [sh, -c, "wget -qO- http://nope || true"]}}},
  readinessProbe: {periodSeconds: 1, exec: {command: [sh, -c, "date; test -f /tmp/ready"]}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: volumes-NUMBER}, spec: {terminationGracePeriodSeconds: 1,
  volumes: [{name: e, emptyDir: {}}],
  initContainers: [{name: i, image: busybox, command: [sh, -c, "echo i > /e/i"], volumeMounts: [{name: e, mountPath: /e}]}],
  containers: [{name: c, image: busybox, command: [sh, -c, "echo c > /e/c; sleep 1000"],
    volumeMounts: [{name: e, mountPath: /e}]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pulls-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: "ngnix"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: waits-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: nginx,
  envFrom: [{configMapRef: {name: missing}}]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: values-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: busybox,
  command: [sh, -c, "echo $K; sleep 1000"], env: [{name: K, valueFrom: {configMapKeyRef: {name: pages, key: k}}}]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: unknown-NUMBER}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: example/app, command: [serve]}]}}
"""
RUNNING = ["server", "configured", "redis", "agnhost", "script", "client", "probed", "volumes", "values"]
CONFIGURATION = """
{apiVersion: v1, kind: ConfigMap, metadata: {name: pages},
 data: {k: v, default.conf: "server { listen 80; location / { return 200 hello; } }"}}
"""


EPHEMERAL = {
    "name": "e",
    "image": "busybox",
    "command": ["sh", "-c", "echo e; sleep 1000"],
    "targetContainerName": "c",
}
LEFT_OUT = ("mockube.client", "mockube.component_base", "asyncio")
"""The caches of objects have what the server has."""


def use(cluster, number):
    """Let clients do in the pods what they do there."""
    for name in RUNNING:
        cluster.wait("Pod", f"{name}-{number}", "Ready")
    for name in ("script", "volumes", "client", "redis"):
        cluster.exec(f"{name}-{number}", ["sh", "-c", "echo a > /tmp/a; cat /tmp/a"])
    for name, place in (("server", "80/"), ("configured", "80/"), ("agnhost", "8080/set?key=a&value=b")):
        port, _, path = place.partition("/")
        with (
            cluster.port_forward(f"{name}-{number}", int(port)) as forwarded,
            urllib.request.urlopen(f"{forwarded.url}/{path}") as answer,
        ):
            answer.read()
    for name in ("server", "script"):
        cluster.patch(
            "Pod",
            f"{name}-{number}",
            {"spec": {"ephemeralContainers": [EPHEMERAL]}},
            subresource="ephemeralcontainers",
        )
        cluster.wait(
            "Pod",
            f"{name}-{number}",
            lambda pod: "running" in pod["status"]["ephemeralContainerStatuses"][0]["state"],
        )
    cluster.wait("Pod", f"finished-{number}", lambda pod: pod["status"]["phase"] == "Failed")
    cluster.wait(
        "Pod", f"restarted-{number}", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"]
    )


def places_in_the_manager(uids):
    gc.collect()
    roots = [each for each in gc.get_objects() if type(each) in {SimulatedPods, SimulatedRuntime}]
    assert len({type(root) for root in roots}) == 2
    return [place for root in roots for place in places_of(root, uids, LEFT_OUT)]


@pytest.mark.timeout(600)  # for 1,008 pods
@pytest.mark.parametrize("count", [1, pytest.param(72, marks=pytest.mark.release)])
def test_pods_that_have_come_and_gone_leave_nothing(count):
    with Cluster(nodes=2 + count // 6) as cluster:
        cluster.apply(CONFIGURATION)
        for number in range(count):
            cluster.create(PODS.replace("NUMBER", str(number)))
        for number in range(count):
            use(cluster, number)
        pods = cluster.list("Pod")
        uids = {pod["metadata"]["uid"] for pod in pods}
        assert places_in_the_manager(uids)
        for pod in pods:
            cluster.delete("Pod", pod["metadata"]["name"])
        for pod in pods:
            cluster.wait_gone("Pod", pod["metadata"]["name"], timeout=60)
        assert places_in_the_manager(uids) == []
