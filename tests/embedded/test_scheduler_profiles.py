"""Profiles of the scheduler, and plugins of its own, in a whole cluster."""

import pytest

from mockube import Cluster, NotStarted
from mockube.scheduler.plugin import SchedulerPlugin

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 50
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}
  pluginConfig:
  - {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}], schedulerName: %s}
"""


class Failing(SchedulerPlugin):
    """Fails for some pods."""

    def filter(self, pod, _):
        if pod.view.key.name.startswith("failing"):
            raise RuntimeError("no prices")


@pytest.fixture
def cluster(tmp_path):
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIGURATION)
    flags = ["--scheduler-config", str(file)]
    with Cluster(nodes=3, manager_flags=flags, scheduler_plugins=[Failing]) as running:
        yield running


def place_of(cluster, name, profile):
    cluster.apply(POD % (name, profile))
    return cluster.wait("Pod", name, lambda pod: pod["spec"].get("nodeName"))["spec"]["nodeName"]


def refusal_of(cluster, name, profile):
    cluster.apply(POD % (name, profile))
    pod = cluster.wait("Pod", name, lambda pod: pod["status"].get("conditions"))
    return pod["status"]["conditions"][0]


def test_pods_are_scheduled_by_the_profile_that_they_name(cluster):
    cluster.apply(POD % ("other", "of-somebody-else"))
    spread = {place_of(cluster, f"spread-{number}", "default-scheduler") for number in range(3)}
    packed = {place_of(cluster, f"packed-{number}", "packing") for number in range(3)}
    assert (len(spread), len(packed)) == (3, 1)
    assert "nodeName" not in cluster.get("Pod", "other")["spec"]
    cluster.advance(5)
    events = {
        (event["regarding"]["name"].partition("-")[0], event["reportingController"])
        for event in cluster.list("Event.events.k8s.io")
        if event["reason"] == "Scheduled"
    }
    assert events == {("spread", "default-scheduler"), ("packed", "packing")}


def test_failing_plugin_fails_only_its_pod(cluster):
    condition = refusal_of(cluster, "failing", "packing")
    assert (condition["reason"], condition["message"]) == (
        "SchedulerError",
        'running "Failing" filter plugin: RuntimeError: no prices',
    )
    assert place_of(cluster, "healthy", "packing")


def test_profile_without_preemption_reports_the_reasons_alone(cluster):
    cluster.apply(
        (POD % ("large", "packing")).replace("cpu: 1", "cpu: 100"),
    )
    pod = cluster.wait("Pod", "large", lambda pod: pod["status"].get("conditions"))
    assert pod["status"]["conditions"][0]["message"] == "0/3 nodes are available: 3 Insufficient cpu."


def test_plugin_that_is_none_is_refused():
    with pytest.raises(NotStarted, match="scheduler_plugins: 5 is neither a subclass of SchedulerPlugin"):
        Cluster(scheduler_plugins=[5]).start()
