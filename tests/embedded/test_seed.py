"""`Cluster(seed=7)`: two runs of a scenario have the same history, byte for byte, in one process and in two.

Run as a program, this module prints the digest of the history of one run.
"""

import asyncio
import hashlib
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from mockube import Cluster
from mockube.apimachinery.timestamps import parse_time
from mockube.embedded.determinism import START
from mockube.embedded.handle import NotStarted
from mockube.etcd.kv import WatchRequest

CONTROLLERS = "system:kube-controller-manager"
FIRST_REVISION = int(START.timestamp() * 1_000_000) + 1
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 20
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "%s"}]}
"""
OTHER_KINDS = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: redis, readinessProbe: {tcpSocket: {port: 6379}}}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: busybox, command: [sleep, infinity]}]}
---
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 6379}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: "*/10 * * * *"
  jobTemplate:
    spec:
      backoffLimit: 1
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox, command: [sh, -c, "sleep 5; echo $RANDOM; exit 1"]}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tasks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: tasks, singular: task, kind: Task}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Task
metadata: {name: one}
"""


def history(cluster):
    """Return every version of every key of the store with its author, and every request with its time."""
    registry = cluster._plane.server.api_server.registry

    async def read():
        last, events = (await registry.kv.status()).revision, []
        request = WatchRequest(key=b"\0", range_end=b"\0", start_revision=FIRST_REVISION)
        async with await registry.kv.watch(request) as watch:
            async for batch in watch:
                events += [(event.kind.name, event.kv) for event in batch.events]
                if batch.revision >= last:
                    break
        return events

    requests = [str(call) for call in cluster.calls(user="*")]
    return [*cluster._context.submit(read()).result(), *registry.journal.entries(), *requests]


def digest(entries):
    return hashlib.sha256("\n".join(map(repr, entries)).encode()).hexdigest()


def rolled(seed=7):
    """20 pods are rolled, a node is deleted, and an hour passes."""
    with Cluster(seed=seed) as cluster:
        cluster.apply(DEPLOYMENT % "nginx:1")
        cluster.wait("Deployment", "web", "Available")
        cluster.apply(DEPLOYMENT % "nginx:2")
        cluster.advance(60)
        cluster.delete("Node", "node-2")
        cluster.advance(3600)
        assert len(cluster.list("Pod")) == 20
        assert cluster.complaints == []
        return history(cluster)


def mixed():
    with Cluster(seed=7, nodes=5) as cluster:
        cluster.apply(OTHER_KINDS)
        cluster.wait("StatefulSet", "db", lambda found: found["status"].get("readyReplicas") == 3)
        cluster.scale("StatefulSet", "db", 1)
        with cluster.inject(user=CONTROLLERS, verb="update", resource="endpointslices", status=500, times=3):
            cluster.advance(1800)
        cluster.exec("db-0", ["sh", "-c", "echo $RANDOM > /data"])
        cluster.delete("DaemonSet", "agent")
        cluster.advance(600)
        return history(cluster)


def differences(first, second):
    return [(one, other) for one, other in zip(first, second, strict=False) if one != other][:3]


def test_runs_of_a_scenario_are_the_same_in_a_process_and_in_another_one():
    first, second = rolled(), rolled()
    assert differences(first, second) == []
    assert len(first) == len(second) > 1500
    command = [sys.executable, "-c", "from tests.embedded.test_seed import *; print(digest(rolled()))"]
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(Path(__file__).parents[2])}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert result.stdout.strip() == digest(first)


def test_runs_with_many_kinds_are_the_same():
    assert differences(mixed(), mixed()) == []


def test_other_seed_has_other_names_and_uids_at_the_same_times():
    names = []
    for seed in (1, 2):
        with Cluster(seed=seed) as cluster:
            cluster.apply(DEPLOYMENT % "nginx:1")
            cluster.wait("Deployment", "web", "Available")
            names.append({pod["metadata"]["name"] for pod in cluster.list("Pod")})
    assert len(names[0] | names[1]) == 40


def test_time_stands_still_between_calls_and_passes_as_far_as_they_need():
    with Cluster(seed=7, nodes=1) as cluster:
        clock = cluster._plane.clock
        began = clock.now()
        assert began - START < timedelta(minutes=1)
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
        assert clock.now() - began < timedelta(seconds=1)
        cluster.apply(
            "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}"
        )
        pod = cluster.wait("Pod", "a", "Ready")
        assert parse_time(pod["metadata"]["creationTimestamp"]) - START < timedelta(minutes=1)
        now = clock.now()
        cluster.advance(100)
        assert clock.now() - now == timedelta(seconds=100)


def test_wait_ends_after_its_seconds_of_the_cluster():
    with Cluster(seed=7, nodes=1) as cluster:
        before = cluster._plane.clock.now()
        with pytest.raises(Exception, match="not created within 600 s"):
            cluster.wait("Pod", "missing", "Ready", timeout=600)
        assert cluster._plane.clock.now() - before >= timedelta(seconds=600)


def test_calls_of_two_threads_do_not_wait_for_each_other():
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}"
    with Cluster(seed=7, nodes=1) as cluster:
        waiting = threading.Thread(target=lambda: cluster.wait("Pod", "a", "Ready", timeout=1e6))
        waiting.start()
        cluster.apply(pod)
        waiting.join(timeout=60)
        assert not waiting.is_alive()


async def test_awaited_cluster_takes_a_seed():
    async with Cluster(seed=7, nodes=1) as cluster:
        await asyncio.gather(
            *(
                cluster.apply(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{i}}}}}")
                for i in range(3)
            )
        )
        await cluster.advance(3600)
        assert len(await cluster.list("ConfigMap")) == 4


@pytest.mark.parametrize("seed", ["7", 7.0, True])
def test_seed_that_is_no_integer_is_refused(seed):
    with pytest.raises(TypeError, match="seed must be an int"):
        Cluster(seed=seed)


@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.1", "::"])
def test_seed_of_server_that_other_machines_reach_is_refused(address):
    with pytest.raises(NotStarted, match="can be computed from the seed"):
        Cluster(seed=7, flags=[f"--bind-address={address}"]).start()


def test_advance_with_seed_waits_for_no_participant():
    with Cluster(seed=7, nodes=0) as cluster:
        cluster.apply(
            "{apiVersion: control.mockube.dev/v1alpha1, kind: ClockParticipant, metadata: {name: p}}"
        )
        before = cluster.get("Clock", "cluster")["status"]["time"]
        cluster.advance(5)
        after = cluster.get("Clock", "cluster")["status"]["time"]
        assert 5 <= (parse_time(after) - parse_time(before)).total_seconds() < 10
