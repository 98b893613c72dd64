"""Measure decisions of the scheduler: the CPU time of each of many pods over many nodes, by what the pods need.

    .venv/bin/python benchmarks/scheduler.py --nodes 5000 --pods 10000 --kinds plain,waiting,zonal,devices

Decisions alone, without a server: claims are bound, and devices allocated, in the caches that the scheduler reads.
"""

import argparse
import asyncio
import time
from collections import Counter
from random import Random
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_PV_BIND_COMPLETED, LABEL_HOSTNAME, LABEL_ZONE
from mockube.client import kinds
from mockube.client.cache.store import Change, Store
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.metrics import MetricsRegistry
from mockube.scheduler.algorithm import SchedulingAlgorithm
from mockube.scheduler.cluster import ClusterSnapshot, SchedulerCache
from mockube.scheduler.devices.claims import DeviceSnapshot, allocate, device_ids
from mockube.scheduler.devices.fingerprints import DeviceFingerprints
from mockube.scheduler.monitor import SchedulerMonitor
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.profiles import DEFAULT_PROFILE
from mockube.scheduler.volumes import INDEXES, AssumedBindings, ClaimBinding, Storage, claims_of
from mockube.scheduler.watched import nodes_of_change

ZONES = "abc"
NOW = "2026-01-01T00:00:00Z"
KINDS = {"claims": kinds.PERSISTENT_VOLUME_CLAIMS, "volumes": kinds.PERSISTENT_VOLUMES}
IN_FLIGHT = 32
"""The number of bindings in progress."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks/scheduler.py")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--kinds", default="plain,waiting,zonal,devices")
    options = parser.parse_args()
    for kind in options.kinds.split(","):
        milliseconds = asyncio.run(Cluster(options.nodes).measure(kind, options.pods))
        print(
            f"{kind}: {milliseconds:.3f} ms of CPU a decision, {options.pods} pods over {options.nodes} nodes"
        )


class Cluster:
    """The caches of a scheduler."""

    def __init__(self, nodes: int) -> None:
        self.gates = FeatureGates()
        names = ("claims", "volumes", "classes", "csi_nodes", "drivers", "capacities", "attachments")
        self.stores = {name: Store() for name in names}
        for name, indexes in INDEXES.items():
            for index in indexes:
                self.stores[name].add_index(*index)
        self.storage = Storage(**self.stores, assumed=AssumedBindings())
        self.cache = SchedulerCache(self.gates)
        monitor = SchedulerMonitor(time.monotonic, MetricsRegistry())
        self.algorithm = SchedulingAlgorithm(self.cache, monitor, None)
        self.devices = None
        self.bindings = []
        self.fingerprints = DeviceFingerprints()
        self.random = Random(7)
        for number in range(nodes):
            self.cache.set_node(node(number))
        self.put(
            "classes",
            {
                "metadata": {"name": "disk"},
                "provisioner": "disk.example.com",
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )

    def put(self, store: str, obj: ReadOnlyTree) -> None:
        old = self.stores[store].put(Key.of(obj), obj)
        resource = KINDS.get(store, kinds.STORAGE_CLASSES)
        for name in nodes_of_change(Change(old, obj), resource, self.storage, self.cache.users_of_claim):
            self.cache.mark_changed(name)

    async def measure(self, kind: str, pods: int) -> float:
        getattr(self, f"prepare_{kind}", lambda _: None)(pods)
        trees = [getattr(self, f"pod_{kind}", pod_plain)(number) for number in range(pods)]
        spent = 0.0
        for tree in trees:
            began = time.process_time()
            pod = PodInfo.of(PodView.of(tree), self.gates)
            snapshot = self.snapshot()
            best, _ = await self.algorithm.decide(pod, snapshot, DEFAULT_PROFILE, leaves_room=False)
            assert best, "no node is feasible"
            chosen = self.random.choice(best)
            claims = claims_of(pod, snapshot.storage)
            bindings = claims.assign(chosen.node, snapshot.storage)
            if self.devices is not None:
                self.allocate(pod, chosen, snapshot.devices)
            self.cache.assign_pod(pod, chosen.name)
            spent += time.process_time() - began
            self.bind(pod, chosen.name, bindings)
        return 1000 * spent / pods

    def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot(
            nodes=self.cache.nodes(),
            labels_of_namespace=lambda _: {},
            storage=self.storage,
            devices=None if self.devices is None else self.devices(),
            matching_counts=self.cache.matching_counts,
            users_of_claim=self.cache.users_of_claim,
            image_sizes=self.cache.image_sizes,
            topology_keys=self.cache.topology_keys,
            gates=self.gates,
        )

    # --- volumes

    def bind(self, pod: PodInfo, node_name: str, bindings: list[ClaimBinding]) -> None:
        """Assume the bindings of a pod, and bind the claims of an earlier one."""
        self.storage.assumed.assume(pod.view.uid, node_name, bindings)
        self.bindings.append((pod, bindings))
        if len(self.bindings) > IN_FLIGHT:
            pod, bindings = self.bindings.pop(0)
            for binding in bindings:
                self.put("volumes", volume(meta.name(binding.claim), "a"))
                self.put("claims", bound_claim(meta.name(binding.claim)))
            self.storage.assumed.forget(pod.view.uid)

    def prepare_waiting(self, pods: int) -> None:
        for number in range(pods):
            self.put("claims", claim(f"claim-{number}"))

    def prepare_zonal(self, pods: int) -> None:
        for number in range(pods):
            self.put("volumes", volume(f"claim-{number}", ZONES[number % 3]))
            self.put("claims", bound_claim(f"claim-{number}"))

    @staticmethod
    def pod_waiting(number: int) -> dict[str, Any]:
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}]
        return pod_plain(number, volumes=volumes)

    pod_zonal = pod_waiting

    # --- devices

    def prepare_devices(self, pods: int) -> None:
        claims = {f"claim-{number}": device_claim(number) for number in range(pods)}
        classes, self.in_use = Store(), Counter()
        classes.put(Key("", "gpu"), GPU)
        store = Store()
        for one in claims.values():
            store.put(Key.of(one), one)
        slices = {one.name: [resource_slice(one.name)] for one in self.cache.nodes()}
        self.devices = lambda: DeviceSnapshot(
            claims=store,
            classes=classes,
            slices=lambda name: slices[name],
            in_use=self.in_use,
            in_flight={},
            is_of_single_nodes=True,
            fingerprints=self.fingerprints,
            gates=self.gates,
        )

    def allocate(self, pod: PodInfo, chosen: NodeInfo, devices: DeviceSnapshot) -> None:
        for allocation in allocate(pod, chosen, devices, NOW).allocations.values():
            self.in_use.update(device_ids(allocation))

    @staticmethod
    def pod_devices(number: int) -> dict[str, Any]:
        return pod_plain(number, resourceClaims=[{"name": "gpu", "resourceClaimName": f"claim-{number}"}])


def node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    labels = {LABEL_HOSTNAME: name, LABEL_ZONE: ZONES[number % 3]}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"}},
    }


def pod_plain(number: int, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}
    metadata = {
        "name": f"pod-{number}",
        "namespace": "default",
        "uid": f"pod-{number}",
        "labels": {"app": "web"},
    }
    return {"metadata": metadata, "spec": {"containers": [container], **spec}, "status": {}}


def claim(name: str, **spec: Any) -> dict[str, Any]:
    fields = {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk"}
    requests = {"resources": {"requests": {"storage": "1Gi"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {**fields, **requests, **spec},
        "status": {"phase": "Pending"},
    }


def bound_claim(name: str) -> dict[str, Any]:
    bound = claim(name, volumeName=f"pv-{name}")
    return {**bound, "metadata": {**bound["metadata"], "annotations": {ANNOTATION_PV_BIND_COMPLETED: "yes"}}}


def volume(name: str, zone: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": LABEL_ZONE, "operator": "In", "values": [zone]}]}]
    return {
        "metadata": {"name": f"pv-{name}", "labels": {LABEL_ZONE: zone}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "disk",
            "claimRef": {"namespace": "default", "name": name, "uid": f"uid-{name}"},
            "csi": {"driver": "disk.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Bound"},
    }


GPU = {
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}


def device_claim(number: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {
        "metadata": {"name": f"claim-{number}", "namespace": "default", "uid": f"claim-{number}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def resource_slice(node_name: str) -> dict[str, Any]:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": "a100"}, "uuid": {"string": f"{node_name}-{number}"}},
        }
        for number in range(8)
    ]
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": node_name, "devices": devices}
    return {"metadata": {"name": f"{node_name}-gpu"}, "spec": spec}


if __name__ == "__main__":
    main()
