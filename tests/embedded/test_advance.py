"""`Cluster.advance` moves the cluster's clock: timeouts elapse, and nodes stay ready."""

import threading

import pytest

from mockube import Cluster
from mockube.apimachinery.timestamps import parse_time
from mockube.apiserver.control.matching import CONTROLLERS
from mockube.cli import clock
from mockube.cli.parsing import CommandParser

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}"
PATIENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  minReadySeconds: 600
  progressDeadlineSeconds: 700
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""


@pytest.fixture
def cluster():
    with Cluster(nodes=2) as started:
        yield started


def are_ready(deployment):
    return deployment.get("status", {}).get("readyReplicas") == 2


def available(deployment):
    return deployment["status"].get("availableReplicas", 0)


def test_advance_makes_deployment_available_at_once(cluster):
    cluster.apply(PATIENT)
    cluster.wait("Deployment", "web", are_ready)
    cluster.advance(500)
    assert available(cluster.get("Deployment", "web")) == 0
    cluster.advance(150)
    assert available(cluster.wait("Deployment", "web", "Available")) == 2


def test_advance_expires_events_and_keeps_nodes_ready(cluster):
    cluster.apply(PATIENT)
    cluster.wait("Deployment", "web", are_ready)
    cluster.advance(10)
    assert cluster.list("Event")
    cluster.advance(2 * 3600)
    assert cluster.list("Event") == []
    ready = {
        condition["status"]
        for node in cluster.list("Node")
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    }
    assert ready == {"True"}
    assert len(cluster.list("Pod")) == 2
    assert cluster.complaints == []


def test_delayed_requests_do_not_block_advance(cluster):
    with cluster.inject(user=CONTROLLERS, verb=("patch", "update"), resource="leases", delay=40.0) as fault:
        cluster.advance(300)
        assert fault.hits > 2


async def test_advance_is_awaited_in_event_loop():
    async with Cluster(nodes=1) as cluster:
        await cluster.apply(CONFIG_MAP % "before")
        await cluster.advance(3600)
        await cluster.apply(CONFIG_MAP % "after")
        before, after = [
            parse_time((await cluster.get("ConfigMap", name))["metadata"]["creationTimestamp"])
            for name in ("before", "after")
        ]
        assert (after - before).total_seconds() >= 3600


def run_clock(cluster, *arguments):
    parser = CommandParser(prog="mockube clock")
    clock.add_flags(parser)
    return clock.run(parser.read([*arguments, f"--kubeconfig={cluster.kubeconfig}"], {}))


def test_command_advances_until_deployment_is_available_and_cluster_is_idle(cluster, capsys):
    cluster.apply(PATIENT)
    begin = parse_time(cluster.get("Deployment", "web")["metadata"]["creationTimestamp"])
    assert run_clock(cluster, "until", "Available", "deployments.apps/web") == 0
    assert available(cluster.get("Deployment", "web")) == 2
    assert run_clock(cluster, "until-idle") == 0
    times = [parse_time(line) for line in capsys.readouterr().out.splitlines()]
    assert 600 <= (times[0] - begin).total_seconds() < 700
    assert 30 <= (times[1] - times[0]).total_seconds() < 200


def test_advance_waits_for_participant(cluster):
    cluster.apply(
        "{apiVersion: control.mockube.dev/v1alpha1, kind: ClockParticipant, metadata: {name: p}, spec: {}}"
    )
    advancing = threading.Thread(target=cluster.advance, args=(5,))
    advancing.start()
    assert advancing.is_alive()
    cluster.delete("ClockParticipant", "p")
    advancing.join(60)
    assert not advancing.is_alive()
