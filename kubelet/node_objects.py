"""The objects that a kubelet registers for its node: Node, Lease and CSINode; and the annotations of simulated nodes.

Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_DNS, uuid5

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.node_machine import UNITS

from .node_shapes import SHAPE, ShapedNode

SIMULATED_NODE_ANNOTATION: Final = ("kwok.x-k8s.io/node", "fake")
"""kwok's annotation of simulated nodes."""
ATTACHED_BY_CONTROLLER: Final = ("volumes.kubernetes.io/controller-managed-attach-detach", "true")
"""The annotation of a node whose volumes are attached by a controller."""
DECLARED_FEATURES: Final = (
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
)
"""The kubelet's declared features, sorted. The API server rejects changes that need another feature."""
LEASE_SECONDS: Final = 40
KUBELET_PORT: Final = 10250
RUNTIME: Final = "mockube"
"""The runtime, kernel and OS image of a node: no real ones, so that tools do not take it for a real platform."""

NODE_CONDITIONS: Final[Sequence[Mapping[str, str]]] = (
    {
        "type": "MemoryPressure",
        "status": "False",
        "reason": "KubeletHasSufficientMemory",
        "message": "kubelet has sufficient memory available",
    },
    {
        "type": "DiskPressure",
        "status": "False",
        "reason": "KubeletHasNoDiskPressure",
        "message": "kubelet has no disk pressure",
    },
    {
        "type": "PIDPressure",
        "status": "False",
        "reason": "KubeletHasSufficientPID",
        "message": "kubelet has sufficient PID available",
    },
    {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
    },
)
"""The conditions of a healthy node."""
_NETWORK_NOT_READY: Final = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns "
    "error: cni plugin not initialized"
)


def is_simulated(node: ReadOnlyTree) -> bool:
    key, value = SIMULATED_NODE_ANNOTATION
    return meta.annotations(node).get(key) == value


def is_disconnected(node: ReadOnlyTree) -> bool:
    return meta.annotations(node).get(wellknown.STOP_HEARTBEATS) in wellknown.STOPS_HEARTBEATS


class StoppedUnit(NamedTuple):
    """A systemd unit of a node that does not run."""

    state: str
    """stopped, failed, or cut-off for a kubelet that runs, and does not reach the API server."""
    since: str


def stopped_units(node: ReadOnlyTree) -> dict[str, StoppedUnit]:
    """Return the systemd units of a node that do not run, by name; what a user has misspelled in the annotation is ignored."""
    text = meta.annotations(node).get(wellknown.STOPPED_UNITS)
    return dict(_parse_units(text)) if text else {}


def _parse_units(text: str) -> Iterator[tuple[str, StoppedUnit]]:
    for entry in text.split(","):
        unit, _, value = entry.strip().partition("=")
        state, _, since = value.partition("@")
        if unit in UNITS:
            yield unit, StoppedUnit(state if state in ("failed", "cut-off") else "stopped", since)


def runs_kubelet(node: ReadOnlyTree) -> bool:
    """Return whether a node has a simulated kubelet that runs and is not disconnected."""
    return is_simulated(node) and not is_disconnected(node) and "kubelet" not in stopped_units(node)


def has_active_kubelet(node: ReadOnlyTree) -> bool:
    """Return whether a node has a simulated kubelet that runs pods: it is not disconnected, and has a container runtime."""
    return runs_kubelet(node) and "containerd" not in stopped_units(node)


def internal_ip(node: ReadOnlyTree) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((address["address"] for address in addresses if address["type"] == "InternalIP"), "")


def node(desired: ShapedNode, address: str, *, version: str, now: datetime) -> dict[str, Any]:
    """Return the Node as it is registered, not yet ready. Its address is "" if it follows from the name."""
    pool, name = desired.pool, desired.name
    labels = {
        wellknown.LABEL_OS: "linux",
        **pool.labels,
        wellknown.LABEL_ARCH: pool.architecture,
        wellknown.LABEL_HOSTNAME: name,
    }
    labels |= {f"beta.{label}": labels[label] for label in (wellknown.LABEL_ARCH, wellknown.LABEL_OS)}
    annotations = {**pool.annotations, **dict([SIMULATED_NODE_ANNOTATION, ATTACHED_BY_CONTROLLER])}
    if desired.zone:
        labels[wellknown.LABEL_ZONE] = desired.zone
    if desired.shape:
        annotations[SHAPE] = desired.shape
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    status: dict[str, Any] = {
        "allocatable": dict(pool.allocatable),
        "capacity": dict(pool.capacity),
        "conditions": _initial_conditions(format_time(now)),
        "declaredFeatures": [*DECLARED_FEATURES],
        "nodeInfo": node_info(
            {"metadata": metadata, "status": {"nodeInfo": {"osImage": pool.os_image}}}, version
        ),
    }
    if pool.images:
        status["images"] = [*pool.images]
    if address:
        status["addresses"] = [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ]
    tree = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
    spec: dict[str, Any] = {"taints": [*pool.taints]} if pool.taints else {}
    if pool.unschedulable:
        spec["unschedulable"] = True
    return {**tree, "spec": spec} if spec else tree


def _initial_conditions(now: str) -> list[dict[str, str]]:
    *others, ready = NODE_CONDITIONS
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    not_ready = {**ready, "status": "False", "reason": "KubeletNotReady", "message": _NETWORK_NOT_READY}
    return [{**condition, **times} for condition in (*others, not_ready)]


def machine_ids(name: str) -> dict[str, str]:
    """Return the ids of a machine and of its boot, derived from the node's name."""
    machine, system, boot = (uuid5(NAMESPACE_DNS, f"{part}.{name}") for part in ("machine", "system", "boot"))
    return {"machineID": machine.hex, "systemUUID": str(system), "bootID": str(boot)}


_USER_NAMESPACE_SINCE: Final = 37
"""The minor version since which kubelets report whether they run in a user namespace."""


def node_info(node: ReadOnlyTree, version: str) -> dict[str, Any]:
    """Return the nodeInfo of a node: what it has, and for the rest what its labels and its kubelet's version say."""
    labels = meta.labels(node)
    info: dict[str, Any] = {
        "architecture": labels.get(wellknown.LABEL_ARCH) or "amd64",
        "containerRuntimeVersion": f"{RUNTIME}://0.1.0",
        "kernelVersion": RUNTIME,
        "kubeProxyVersion": "",
        "operatingSystem": labels.get(wellknown.LABEL_OS) or "linux",
        "osImage": RUNTIME,
        **machine_ids(meta.name(node)),
    }
    info |= {name: value for name, value in version_info(version).items() if value is not None}
    present = (node.get("status") or {}).get("nodeInfo") or {}
    return {**info, **{name: value for name, value in present.items() if value}}


def version_info(version: str) -> dict[str, Any]:
    """Return the fields of a nodeInfo that the kubelet's version sets; None for one that an older kubelet does not report."""
    has_user_namespace = minor_number(version) >= _USER_NAMESPACE_SINCE
    return {"kubeletVersion": version, "runningInUserNamespace": False if has_user_namespace else None}


def kubelet_minor(node: ReadOnlyTree) -> int:
    """Return the minor version of a node's kubelet, such as 37; 0 if it reports none."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return minor_number(info.get("kubeletVersion") or "")


def minor_number(version: str) -> int:
    """Return the minor version of a kubelet, such as 37 of v1.37.2; 0 if it has none."""
    match = re.match(r"v?1\.([0-9]{1,3})", version)
    return int(match[1]) if match else 0


def lease(owner: ReadOnlyTree, now: datetime) -> dict[str, Any]:
    name = meta.name(owner)
    metadata = {
        "name": name,
        "namespace": wellknown.NAMESPACE_NODE_LEASE,
        "ownerReferences": [_owner_reference(owner)],
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "acquireTime": format_micro_time(now),
            "leaseDurationSeconds": LEASE_SECONDS,
            **lease_renewal(name, now),
        },
    }


def lease_renewal(name: str, now: datetime) -> dict[str, str]:
    """Return the fields of a Lease that each heartbeat renews."""
    return {"holderIdentity": name, "renewTime": format_micro_time(now)}


def csi_node(owner: ReadOnlyTree) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": meta.name(owner), "ownerReferences": [_owner_reference(owner)]},
        "spec": {"drivers": []},
    }


def _owner_reference(owner: ReadOnlyTree) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": meta.name(owner), "uid": meta.uid(owner)}
