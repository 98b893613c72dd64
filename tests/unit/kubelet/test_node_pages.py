"""Metrics, stats summary and configz endpoints of a simulated node."""

import asyncio
from datetime import UTC, datetime

import orjson
import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.quantity import parse
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.timestamps import format_time
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.kinds import PODS
from mockube.component_base.exposition import metrics_text
from mockube.container_runtime.records import Records
from mockube.kubelet.pod_lifecycle.container_context import NO_CONTEXT
from mockube.kubelet.probes.totals import ProbeRecords
from mockube.kubelet.server.kubelet_metrics import cadvisor_metrics, kubelet_metrics, resource_metrics
from mockube.kubelet.server.node_counters import KubeletCounters
from mockube.kubelet.server.node_pages import NodePages, configuration, summary
from mockube.kubelet.server.node_usage import SLICE, Measurement, NodeUsage, UsageSources
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.event_loop import yield_to_loop

NOW = datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC)
NODE = {
    "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "status": {
        "capacity": {"cpu": "4", "memory": "1Ki", "ephemeral-storage": "5k", "pods": "7"},
        "nodeInfo": {"kubeletVersion": "v1.36.3", "machineID": "m", "bootID": "b", "systemUUID": "s"},
    },
}
POD = {
    "metadata": {"name": "p", "namespace": "d", "uid": "u"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "1500m", "memory": "600"}},
            }
        ],
        "initContainers": [{"name": "first", "image": "j"}],
    },
    "status": {
        "phase": "Running",
        "qosClass": "Burstable",
        "startTime": "2026-01-01T12:00:00Z",
        "containerStatuses": [
            {
                "name": "c",
                "containerID": "containerd://abc",
                "state": {"running": {"startedAt": "2026-01-01T12:00:00Z"}},
            }
        ],
        "initContainerStatuses": [{"name": "first", "state": {"terminated": {"exitCode": 0}}}],
    },
}


def measurement_of(*pods):
    measurement = Measurement(NODE, pods, NOW)
    for pod in pods:
        key = (meta.namespace(pod), meta.name(pod))
        measurement.usage[key] = {"c": {"cpu": parse("250m"), "memory": parse("512")}}
        measurement.totals[key] = {"c": {"cpu": 2.5, "memory": 0.0}}
        measurement.sums[key] = measurement.sums["", ""] = {"cpu": 2.5, "memory": 0.0}
    return measurement


def lines_of(families):
    text = metrics_text(families).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_resource_metrics_of_containers_pods_and_node():
    assert lines_of(resource_metrics(measurement_of(POD))) == [
        'container_cpu_usage_seconds_total{container="c",namespace="d",pod="p"} 2.5',
        'container_memory_working_set_bytes{container="c",namespace="d",pod="p"} 512',
        'container_start_time_seconds{container="c",namespace="d",pod="p"} 1.7672688e+09',
        "node_cpu_usage_seconds_total 2.5",
        "node_memory_working_set_bytes 512",
        'pod_cpu_usage_seconds_total{namespace="d",pod="p"} 2.5',
        'pod_memory_working_set_bytes{namespace="d",pod="p"} 512',
        "resource_scrape_error 0",
    ]


def test_cadvisor_metrics_have_cgroup_ids():
    lines = lines_of(cadvisor_metrics(measurement_of(POD)))
    root = 'container="",id="/",image="",name="",namespace="",pod=""'
    pod = 'container="",id="/kubepods/burstable/podu",image="",name="",namespace="d",pod="p"'
    container = 'container="c",id="/kubepods/burstable/podu/abc",image="i",name="abc",namespace="d",pod="p"'
    for group in (root, pod, container):
        assert f"container_memory_working_set_bytes{{{group}}} 512" in lines
        cpu = group.replace(",id=", ',cpu="total",id=')
        assert f"container_cpu_usage_seconds_total{{{cpu}}} 2.5" in lines
    assert f"container_spec_cpu_quota{{{container}}} 150000" in lines
    assert f"container_spec_cpu_period{{{container}}} 100000" in lines
    assert f"container_spec_cpu_shares{{{container}}} 512" in lines
    assert f"container_spec_memory_limit_bytes{{{container}}} 600" in lines
    assert 'machine_cpu_cores{boot_id="b",machine_id="m",system_uuid="s"} 4' in lines


def test_container_without_limits_has_no_quota_metric():
    spec = {"containers": [{"name": "c", "image": "i"}]}
    lines = lines_of(cadvisor_metrics(measurement_of(POD | {"spec": spec})))
    assert not [
        line for line in lines if line.startswith(("container_spec_cpu_quota", "container_spec_cpu_period"))
    ]
    assert [line.rpartition(" ")[2] for line in lines if line.startswith("container_spec_cpu_shares")] == [
        "2"
    ]


def test_kubelet_metrics_count_pods_and_containers():
    lines = lines_of(kubelet_metrics(measurement_of(POD)))
    assert 'kubelet_node_name{node="n"} 1' in lines
    assert "kubelet_running_pods 1" in lines
    assert 'kubelet_running_containers{container_state="exited"} 1' in lines
    assert 'kubelet_running_containers{container_state="running"} 1' in lines
    (build,) = [line for line in lines if line.startswith("kubernetes_build_info")]
    assert 'git_version="v1.36.3"' in build
    assert 'major="1",minor="36"' in build


def test_summary_has_fields_for_metrics_server():
    found = orjson.loads(orjson.dumps(summary(measurement_of(POD))))
    assert found["node"]["memory"]["availableBytes"] == 512
    assert found["node"]["fs"]["capacityBytes"] == 5000
    [pod] = found["pods"]
    assert pod["podRef"] == {"name": "p", "namespace": "d", "uid": "u"}
    [container] = pod["containers"]
    assert container["cpu"] == {
        "time": "2026-01-01T12:00:10Z",
        "usageNanoCores": 250_000_000,
        "usageCoreNanoSeconds": 2_500_000_000,
    }
    assert container["startTime"] == "2026-01-01T12:00:00Z"
    assert (container["memory"]["workingSetBytes"], container["memory"]["availableBytes"]) == (512, 88)


def test_summary_has_what_a_kubelet_measures_of_each_part():
    found = summary(measurement_of(POD))
    [pod] = found["pods"]
    assert {"fs", "runtime", "network", "rlimit"} <= found["node"].keys()
    assert {"ephemeral-storage", "process_stats", "network", "volume"} <= pod.keys()
    assert all({"rootfs", "logs", "cpu", "memory"} <= container.keys() for container in pod["containers"])


@pytest.mark.parametrize(
    ("version", "setting", "has"),
    [
        ("v1.29.0", "podLogsDir", False),
        ("v1.37.0", "podLogsDir", True),
        ("v1.35.1", "memoryReservationPolicy", False),
    ],
)
def test_configuration_has_the_settings_of_its_minor(version, setting, has):
    assert (setting in configuration({"status": {"nodeInfo": {"kubeletVersion": version}}})) == has


def test_configuration_has_what_the_file_sets():
    settings = {
        "maxPods": 7,
        "authentication": {"webhook": {"cacheTTL": "0s"}, "x509": {"clientCAFile": "/ca"}},
        "clusterDNS": ["10.0.0.1"],
    }
    found = configuration({}, settings)
    assert (found["maxPods"], found["clusterDNS"]) == (7, ["10.0.0.1"])
    assert found["authentication"]["webhook"]["cacheTTL"] == "2m0s"
    assert found["authentication"]["x509"]["clientCAFile"] == "/ca"


def test_summary_may_omit_file_systems():
    assert "fs" not in summary(measurement_of(), with_file_systems=False)["node"]


def test_configz_has_max_pods_of_node():
    found = configuration(NODE)
    assert (found["kind"], found["maxPods"], found["port"]) == ("KubeletConfiguration", 7, 10250)


class RequestedKinds:
    """kwok's objects, of which there are none; `names` are the kinds that were read."""

    def __init__(self):
        self.names = set()

    async def list(self, plural):
        self.names.add(plural)
        return ()


@pytest.mark.parametrize(
    ("path", "kinds", "line"),
    [
        ("/metrics", {"metrics"}, b"kubelet_running_pods 1"),
        (
            "/metrics/resource",
            {"metrics", "resourceusages", "clusterresourceusages"},
            b'pod_memory_working_set_bytes{namespace="d",pod="p"} 1.6777216e+07',
        ),
    ],
)
async def test_usage_is_measured_for_pages_with_usage(clock, path, kinds, line):
    pods = FakeCaches(
        {PODS: [{**POD, "spec": {**POD["spec"], "nodeName": "n"}}]}, {PODS: {BY_NODE: node_of_pod}}
    ).of(PODS)
    kwok, counters = RequestedKinds(), KubeletCounters(clock)
    usage = NodeUsage(pods, clock, usage_sources(kwok, counters))
    pages = NodePages(usage, kwok, clock, ProbeRecords(Records()), NO_CONTEXT, counters)
    response = await pages.respond(path, {}, NODE)
    assert line in response.body.splitlines()
    assert kwok.names == kinds


def usage_sources(kwok, counters):
    return UsageSources(kwok=kwok, random=SeededRandom(1), find_claim=lambda *_: None, counters=counters)


def usage_of(clock, counters, *pods):
    views = FakeCaches(
        {PODS: [{**pod, "spec": {**pod["spec"], "nodeName": "n"}} for pod in pods]},
        {PODS: {BY_NODE: node_of_pod}},
    ).of(PODS)
    return NodeUsage(views, clock, usage_sources(RequestedKinds(), counters))


async def test_cumulative_usage_does_not_fall_when_pods_end(clock):
    """Also when a container of a pod ends."""
    counters = KubeletCounters(clock)

    async def measure(*pods):
        return await usage_of(clock, counters, *pods).measure(NODE)

    def node_and_pod(measurement):
        return measurement.cumulative_usage(NODE, "cpu"), measurement.cumulative_usage(POD, "cpu")

    started = {"state": {"running": {"startedAt": format_time(clock.now())}}}
    running = {**POD, "status": {**POD["status"], "containerStatuses": [{"name": "c", **started}]}}
    other = {**running, "metadata": {**POD["metadata"], "name": "other", "uid": "o"}}
    ended = {**POD, "status": {**POD["status"], "containerStatuses": []}}
    clock.advance(100)
    node, pod = node_and_pod(await measure(running, other))
    assert node == 2 * pod > 0
    assert node_and_pod(await measure(ended)) == (node, pod)
    assert node_and_pod(await measure()) == (node, 0)
    clock.advance(100)
    assert node_and_pod(await measure(running)) == pytest.approx((2 * node, node))
    counters.forget("n")
    assert node_and_pod(await measure()) == (0, 0)


async def test_usage_until_a_later_scrape_stays_when_an_earlier_one_ends(clock):
    counters = KubeletCounters(clock)
    pods = [{**POD, "metadata": {**POD["metadata"], "name": str(number)}} for number in range(SLICE)]
    earlier = asyncio.create_task(usage_of(clock, counters, *pods).measure(NODE))
    await yield_to_loop()
    assert not earlier.done()
    clock.advance(1)
    later = await usage_of(clock, counters).measure(NODE)
    assert (await earlier).at < later.at == counters.usage_totals["n"].at
