"""Reject nodes that cannot attach more volumes of a driver. Upstream: plugins/nodevolumelimits."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.indexes import BY_ATTACHED_NODE
from mockube.client.component_helpers.volumes import MIGRATED_PLUGINS
from mockube.client.resources import Key
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.node_traits import NO_TRAITS, NeedsReference, NodePart, NodeTraits
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.volumes import Storage, claim_names, class_of

from .filter import Check, Rejection

_EXCEEDED: Final = Rejection(("node(s) exceed max volume count",))

Volumes = Mapping[tuple[str, str], str]
"""Drivers by driver and handle of a volume."""


def volume_limits(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | None:
    """Count the volumes of CSI drivers on a node, and reject it if it has more than its CSINode allows."""
    volumes = _volumes_of(pod, snapshot.storage)
    if not volumes:
        return None
    needs_drivers = snapshot.gates.is_on("VolumeLimitScaling")
    required = _required_drivers(volumes, snapshot.storage) if needs_drivers else []

    def check(node: NodeInfo) -> Rejection | None:
        drivers = _drivers_of(node.name, snapshot.storage)
        for name in required:
            if name not in drivers:
                return Rejection((f"{name} CSI driver is not installed on the node",))
        limits = _limits_of(drivers)
        if limits.keys().isdisjoint(volumes.values()):
            return None
        used = _volumes_on(node, snapshot.storage)
        new_counts = Counter(driver for volume, driver in volumes.items() if volume not in used)
        counts = _attached_counts(used, node.name, snapshot)
        is_exceeded = any(
            driver in limits and counts[driver] + count > limits[driver]
            for driver, count in new_counts.items()
        )
        return _EXCEEDED if is_exceeded else None

    return check


def volume_limits_traits(pod: PodInfo, snapshot: ClusterSnapshot) -> NodeTraits:
    """Return how many volumes of the pod's drivers a node can attach. Raises NeedsReference if it may have attached the pod's."""
    storage = snapshot.storage
    volumes = _volumes_of(pod, storage)
    if snapshot.gates.is_on("VolumeLimitScaling") and _required_drivers(volumes, storage):
        raise NeedsReference
    limited_drivers = storage.limited_drivers & {*volumes.values()}
    if not limited_drivers:
        return NO_TRAITS
    for name in pod.claims:
        claim = storage.claims.get(pod.view.key.namespace, name)
        volume = "" if claim is None else claim["spec"].get("volumeName") or ""
        if snapshot.users_of_claim(Key(pod.view.key.namespace, name)) or storage.nodes_of_volume(volume):
            raise NeedsReference
    drivers = tuple(sorted(limited_drivers))

    def free_volumes(node: NodeInfo) -> Hashable:
        limits = _limits_of(_drivers_of(node.name, storage))
        if limits.keys().isdisjoint(drivers):
            return ()
        counts = _attached_counts(_volumes_on(node, storage), node.name, snapshot)
        return tuple(limits[driver] - counts[driver] if driver in limits else None for driver in drivers)

    return NodeTraits(parts=(NodePart(("limits", drivers), free_volumes),))


def _drivers_of(node: str, storage: Storage) -> Mapping[str, ReadOnlyTree]:
    """Return the CSI drivers that are installed on a node, by name."""
    csi_node = storage.csi_nodes.get("", node)
    drivers = () if csi_node is None else csi_node["spec"].get("drivers") or ()
    return {driver["name"]: driver for driver in drivers}


def _limits_of(drivers: Mapping[str, ReadOnlyTree]) -> Mapping[str, int]:
    return {
        name: int(driver["allocatable"]["count"])
        for name, driver in drivers.items()
        if (driver.get("allocatable") or {}).get("count") is not None
    }


def _attached_counts(used: Volumes, node: str, snapshot: ClusterSnapshot) -> Counter[str]:
    """Return the number of volumes by driver: those that the pods on a node use, and others that are still attached."""
    if snapshot.gates.is_before("1.32"):
        return Counter(used.values())
    return Counter({**used, **_attachments_of(node, snapshot.storage)}.values())


def _volumes_on(node: NodeInfo, storage: Storage) -> dict[tuple[str, str], str]:
    """Return the volumes that the pods on a node use."""
    volumes: dict[tuple[str, str], str] = {}
    for pod in node.pods.values():
        volumes |= _volumes_of(pod, storage)
    return volumes


def _required_drivers(volumes: Volumes, storage: Storage) -> list[str]:
    """Return the drivers without which a node is not feasible."""
    drivers = sorted({*volumes.values()})
    return [
        driver
        for driver in drivers
        if (row := storage.drivers.get("", driver)) is not None
        and row["spec"].get("preventPodSchedulingIfMissing") is True
    ]


def _volumes_of(pod: PodInfo, storage: Storage) -> dict[tuple[str, str], str]:
    """Return the volumes of CSI drivers that a pod uses, or will use. Those of migrated plugins do not count."""
    volumes = {}
    for name, _ in claim_names(pod):
        claim = storage.claims.get(pod.view.key.namespace, name)
        handle = None if claim is None else _handle_of(claim, storage)
        if handle is not None:
            volumes[handle] = handle[0]
    return volumes


def _handle_of(claim: ReadOnlyTree, storage: Storage) -> tuple[str, str] | None:
    name = claim["spec"].get("volumeName")
    volume = storage.volumes.get("", name) if name else None
    if volume is not None:
        source = volume["spec"].get("csi")
        return None if source is None else (source["driver"], source["volumeHandle"])
    storage_class = class_of(claim, storage)
    if storage_class is None or storage_class["provisioner"] in MIGRATED_PLUGINS:
        return None
    # The claim stands for the volume that is not provisioned yet.
    return storage_class["provisioner"], meta.namespaced_name(claim)


def _attachments_of(node: str, storage: Storage) -> dict[tuple[str, str], str]:
    attached = {}
    for attachment in storage.attachments.by_index(BY_ATTACHED_NODE, node):
        driver = attachment["spec"].get("attacher")
        name = (attachment["spec"].get("source") or {}).get("persistentVolumeName")
        volume = storage.volumes.get("", name) if driver and name else None
        source = None if volume is None else volume["spec"].get("csi")
        if source is not None:
            attached[driver, source["volumeHandle"]] = driver
    return attached
