"""`Cluster.advance` leaps over what repeats in an idle cluster, and misses nothing that happens in between."""

from datetime import timedelta

import pytest

from mockube import Cluster
from mockube.apimachinery.timestamps import parse_micro_time, parse_time
from mockube.apiserver.control.matching import CONTROLLERS

HOUR, DAY = 3600, 86400
CRON_JOB = """
apiVersion: batch/v1
kind: CronJob
metadata: {name: hourly}
spec:
  schedule: "0 * * * *"
  jobTemplate:
    spec:
      ttlSecondsAfterFinished: 600
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: busybox, command: [sleep, "20"]}]
"""
SLEEPER = """
apiVersion: v1
kind: Pod
metadata: {name: sleeper}
spec:
  restartPolicy: Never
  containers: [{name: main, image: busybox, command: [sleep, "30000"]}]
"""


@pytest.fixture
def cluster():
    with Cluster(nodes=2) as started:
        yield started


def clock_of(cluster):
    return cluster._plane.clock


def ready(node):
    return next(each for each in node["status"]["conditions"] if each["type"] == "Ready")


def times_of(calls):
    return [call.at for call in calls]


def test_idle_day_is_as_if_it_was_lived(cluster):
    before = clock_of(cluster).now()
    cluster.clear_calls()
    cluster.advance(DAY)
    now = clock_of(cluster).now()
    assert now - before >= timedelta(days=1)
    for lease in (
        *cluster.list("Lease", namespace="kube-node-lease"),
        *cluster.list("Lease", namespace="kube-system"),
    ):
        assert now - parse_micro_time(lease["spec"]["renewTime"]) < timedelta(seconds=15)
    for node in cluster.list("Node"):
        assert ready(node)["status"] == "True"
        assert now - parse_time(ready(node)["lastHeartbeatTime"]) < timedelta(minutes=6)
    assert cluster.complaints == []
    # What was left out: otherwise each node would have renewed its Lease 8640 times.
    assert len(cluster.calls(user=CONTROLLERS, verb="patch", resource="leases")) < 100
    assert sum((leap.end - leap.start for leap in clock_of(cluster).leaps), timedelta()) > timedelta(hours=23)


def test_hourly_job_runs_each_hour_of_a_day_at_its_time(cluster):
    cluster.apply(CRON_JOB)
    cluster.clear_calls()
    cluster.advance(DAY)
    created = times_of(cluster.calls(user=CONTROLLERS, verb="create", resource="jobs"))
    assert len(created) == 24
    assert all(time.minute == 0 and time.second < 5 for time in created)
    deleted = times_of(cluster.calls(user=CONTROLLERS, verb="delete", resource="jobs"))
    assert len(deleted) in {23, 24}
    ages = [(end - start).total_seconds() for start, end in zip(created, deleted, strict=False)]
    assert 615 <= min(ages) <= max(ages) <= 640


def test_pod_ends_in_the_middle_of_a_quiet_time(cluster):
    cluster.apply(SLEEPER)
    cluster.wait("Pod", "sleeper", lambda pod: pod["status"].get("phase") == "Running")
    cluster.advance(DAY)
    pod = cluster.get("Pod", "sleeper")
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert pod["status"]["phase"] == "Succeeded"
    ran = parse_time(state["finishedAt"]) - parse_time(state["startedAt"])
    assert 30000 <= ran.total_seconds() <= 30005


def test_node_without_heartbeats_is_noticed_at_its_time(cluster):
    cluster.advance(HOUR)
    before = clock_of(cluster).now()
    cluster.patch("Node", "node-2", {"metadata": {"annotations": {"mockube.dev/stop-heartbeats": "true"}}})
    cluster.advance(HOUR)
    assert ready(cluster.get("Node", "node-1"))["status"] == "True"
    condition = ready(cluster.get("Node", "node-2"))
    assert condition["status"] == "Unknown"
    silent = (parse_time(condition["lastTransitionTime"]) - before).total_seconds()
    assert 39 <= silent <= 60
    taints = {
        taint["key"]: parse_time(taint["timeAdded"])
        for taint in cluster.get("Node", "node-2")["spec"]["taints"]
    }
    assert (taints["node.kubernetes.io/unreachable"] - before).total_seconds() < 75


def test_heartbeats_that_fail_are_noticed_at_their_time(cluster):
    cluster.advance(HOUR)
    before = clock_of(cluster).now()
    with cluster.inject(user=CONTROLLERS, verb="patch", resource="leases", name="node-2", status=500):
        cluster.advance(1800)
    # Its status still reaches the server, so that the node becomes ready again and again.
    events = [event for event in cluster.list("Event") if event.get("reason") == "NodeNotReady"]
    first = min(parse_time(event["firstTimestamp"]) for event in events)
    assert 39 <= (first - before).total_seconds() <= 62


def test_watch_of_a_client_ends_at_its_timeout_at_the_latest_after_a_leap(cluster):
    kubernetes = pytest.importorskip("kubernetes")
    core = kubernetes.client.CoreV1Api(cluster.kubernetes())
    stream = core.list_namespaced_config_map(
        "default", watch=True, timeout_seconds=120, _preload_content=False
    )
    cluster.advance(DAY)
    assert b"kube-root-ca.crt" in stream.read()
