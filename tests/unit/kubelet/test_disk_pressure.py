"""A node whose disk fills up: its condition, what its kubelet removes, and the pods that it evicts."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import NODES
from mockube.client.metrics.process import Metrics
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.image_service import StoredImage
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.image_service import SimulatedImages
from mockube.kubelet.disk_pressure import DiskPressure
from mockube.kubelet.evictions import Evictions
from mockube.kubelet.pod_lifecycle.admission import NodeAllocation, admission_rejection
from mockube.kubelet.pod_lifecycle.pressure_eviction import PodUsage, disk_threshold, eviction_message
from tests.support.controllers.pods import container, pod
from tests.support.images import IMAGES

GIBIBYTE = 1 << 30
NODE = "node-1"


class Cluster:
    """A node with a disk of 100 GiB, and what its kubelet and its run-time know and do."""

    def __init__(self):
        self.clock = SteppedClock()
        self.node = {
            "metadata": {
                "name": NODE,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "creationTimestamp": format_time(self.clock.now()),
            },
            "status": {"conditions": [{"type": "DiskPressure", "status": "False"}], "images": []},
        }
        self.pods, self.used, self.events, self.enqueued = [], {}, [], []
        self.images = SimulatedImages(IMAGES)
        self.evictions = Evictions(Records(), self)
        informers = SimpleNamespace(
            of=lambda kind: SimpleNamespace(lister=self._nodes if kind is NODES else self._pods)
        )
        self._nodes = SimpleNamespace(get=lambda *_: self.node)
        self._pods = SimpleNamespace(by_index=lambda *_: [PodView.of(each) for each in self.pods])
        context = SimpleNamespace(
            informers=informers,
            client=self,
            clock=self.clock,
            metrics=Metrics(self.clock),
            recorder=SimpleNamespace(of=lambda _: self),
        )
        self.pressure = DiskPressure(context, self, self.images, self.evictions, self.enqueued.append)

    # --- the client, the recorder and the run-time

    async def patch(self, _resource, _key, body, **_):
        status = self.node["status"]
        for entry in body["status"].pop("conditions", ()):
            status["conditions"] = conditions.set_condition(status["conditions"], entry, self.clock.now())
        self.node = {**self.node, "status": {**status, **body["status"]}}

    def record_on(self, _host, _involved, _type, reason, message, **_):
        self.events.append((reason, message))

    def disk_usage(self, described):
        used = self.used.get(meta.uid(described))
        return None if used is None else DiskUsage({"c": used * GIBIBYTE}, {})

    def node_disk_use(self, _node):
        return sum(self.used.values()) * GIBIBYTE

    def remove_containers(self, uid):
        self.used.pop(uid, None)

    # --- what a test does

    def add(self, name, used, priority=0, phase="Running"):
        described = pod(container("c", image="busybox:1"), priority=priority)
        described["metadata"] |= {"name": name, "uid": name}
        described["status"] = {"phase": phase}
        self.pods.append(described)
        self.used[name] = used

    async def look(self, seconds=10):
        self.clock.advance(seconds)
        return await self.pressure._look_at(Key("", NODE))

    def reasons(self):
        return [reason for reason, _ in self.events]

    def has_pressure(self):
        return conditions.status(self.node, "DiskPressure") == "True"


@pytest.fixture
def cluster():
    return Cluster()


async def test_node_with_enough_of_its_disk_is_not_looked_at_again(cluster):
    cluster.add("a", 84)
    assert await cluster.look() is None
    assert (cluster.has_pressure(), cluster.events) == (False, [])


async def test_pod_that_fills_the_disk_is_evicted_and_the_condition_ends_later(cluster):
    cluster.add("small", 1)
    cluster.add("large", 90)
    assert await cluster.look() == timedelta(seconds=10)
    assert cluster.has_pressure()
    assert cluster.events == [("EvictionThresholdMet", "Attempting to reclaim ephemeral-storage")]
    assert [key.name for key in cluster.enqueued] == ["large"]
    message = cluster.evictions.find(PodView.of(cluster.pods[1]), cluster.clock.now()).message
    assert message == (
        "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9437184Ki. "
        "Container c was using 94371840Ki, request is 0, has larger consumption of ephemeral-storage. "
    )
    cluster.pods[1]["status"] = {"phase": "Failed", "reason": "Evicted"}
    assert await cluster.look() == timedelta(seconds=10)
    assert cluster.used == {"small": 1}
    await cluster.look(280)
    assert cluster.has_pressure()
    await cluster.look(20)
    assert not cluster.has_pressure()
    assert await cluster.look() is None


async def test_node_that_is_forgotten_and_comes_again_had_no_pressure(cluster):
    cluster.add("large", 90)
    await cluster.look()
    cluster.pressure.forget_node(NODE)
    cluster.used.clear()
    cluster.pods.clear()
    assert await cluster.look() is None


async def test_containers_that_have_ended_are_removed_before_a_pod_is_evicted(cluster):
    cluster.add("ended", 90, phase="Succeeded")
    cluster.add("running", 1)
    await cluster.look()
    assert (cluster.has_pressure(), cluster.enqueued, cluster.used) == (True, [], {"running": 1})


async def test_images_without_pods_are_removed_before_a_pod_is_evicted(cluster):
    in_use, other = (
        StoredImage(names=(f"docker.io/library/{name}:1",), size=size * GIBIBYTE)
        for name, size in (("busybox", 1), ("nginx", 10))
    )
    for image in (in_use, other):
        cluster.images.add_image(NODE, image)
    cluster.node["status"]["images"] = [{"names": [*each.names]} for each in (in_use, other)]
    cluster.add("a", 80)
    await cluster.look()
    assert (cluster.has_pressure(), cluster.enqueued) == (True, [])
    assert cluster.images.list_images(NODE) == [in_use]
    assert cluster.node["status"]["images"] == [{"names": ["docker.io/library/busybox:1"]}]


async def test_collection_of_images_that_does_not_help_is_reported(cluster):
    cluster.add("critical", 86, priority=2_000_000_000)
    await cluster.look()
    assert cluster.reasons() == ["EvictionThresholdMet"]
    await cluster.look(295)
    assert cluster.reasons()[1:] == ["FreeDiskSpaceFailed", "EvictionThresholdMet"]
    assert cluster.events[1][1] == (
        "Insufficient free disk space on the node's image filesystem (86% of 100.0 GiB used). "
        "Failed to free sufficient space by deleting unused images (freed 0 bytes). "
        "Investigate disk usage, as it could be used by active images, logs, volumes, or other data."
    )
    await cluster.look(300)
    assert cluster.reasons()[3:] == ["FreeDiskSpaceFailed", "ImageGCFailed", "EvictionThresholdMet"]
    assert (cluster.events[3][1], cluster.enqueued) == (cluster.events[4][1], [])


@pytest.mark.parametrize(
    ("available", "threshold"), [(16, 15), (15, 15), (12, 15), (10, 15), (9, 10), (0, 10)]
)
def test_lower_threshold_is_named_once_it_is_met(available, threshold):
    assert disk_threshold(available * GIBIBYTE, 100 * GIBIBYTE) == threshold * GIBIBYTE


def test_message_does_not_name_a_pod_that_fills_its_volumes():
    usage = PodUsage(
        pod=pod(container("c", image="busybox")), resource="ephemeral-storage", used={}, in_volumes=5
    )
    assert usage.total == 5
    assert "Container" not in eviction_message(usage, 10, 5)


@pytest.mark.parametrize(
    ("other", "message"),
    [("False", "[DiskPressure]"), ("True", "[MemoryPressure DiskPressure]")],
)
def test_node_without_disk_rejects_all_pods_but_critical_ones(other, message):
    statuses = {"MemoryPressure": other, "DiskPressure": "True"}
    node = {"status": {"conditions": [{"type": kind, "status": each} for kind, each in statuses.items()]}}
    nothing = NodeAllocation({}, {}, 0, ())
    tolerations = [{"operator": "Exists"}]
    described = pod(container(image="busybox"), tolerations=tolerations)
    described["status"]["qosClass"] = "Guaranteed"
    rejection = admission_rejection(described, node, {}, (), nothing)
    assert (rejection.reason, rejection.message) == ("Evicted", f"The node had condition: {message}. ")
    critical = pod(container(image="busybox"), priority=2_000_000_000)
    assert admission_rejection(critical, node, {}, (), nothing) is None
