"""What a kubelet registers for its node: the Node, its Lease, its CSINode. And what tells that a node is simulated.

Pure.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    LABEL_ARCH,
    LABEL_HOSTNAME,
    LABEL_OS,
    LABEL_ZONE,
    NAMESPACE_NODE_LEASE,
)
from mockube.controller_manager.kubelet.resizing import DesiredNodes

MARK: Final = ("kwok.x-k8s.io/node", "fake")
"""The annotation of nodes that are simulated, by whomever; it is kwok's."""
STOP_HEARTBEATS: Final = "mockube.dev/stop-heartbeats"
"""The annotation that makes a node as silent as if it were cut off."""
LEASE_SECONDS: Final = 40
KUBELET_PORT: Final = 10250
RUNTIME: Final = "mockube"
"""What a node runs on: no tool shall take it for one that it knows."""

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
"""Of a healthy node, as its kubelet says it."""


def is_simulated(node: ReadOnlyTree) -> bool:
    key, value = MARK
    return meta.annotations(node).get(key) == value


def is_silent(node: ReadOnlyTree) -> bool:
    return meta.annotations(node).get(STOP_HEARTBEATS) == "true"


def internal_ip(node: ReadOnlyTree) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((address["address"] for address in addresses if address["type"] == "InternalIP"), "")


def node_name(number: int) -> str:
    return f"node-{number}"


def node(number: int, wanted: DesiredNodes, *, capacity: Mapping[str, str], version: str) -> dict[str, Any]:
    """As it is registered: what its health is comes with its first status. Zones are given in turn."""
    name, zones = node_name(number), wanted.zones
    labels = {**wanted.labels, LABEL_ARCH: "amd64", LABEL_HOSTNAME: name, LABEL_OS: "linux"}
    labels |= {f"beta.{label}": labels[label] for label in (LABEL_ARCH, LABEL_OS)}
    if zones:
        labels[LABEL_ZONE] = zones[(number - 1) % len(zones)]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict([MARK])},
        "status": {
            "allocatable": dict(capacity),
            "capacity": dict(capacity),
            "nodeInfo": _node_info(version),
        },
    }


def _node_info(version: str) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "bootID": "",
        "containerRuntimeVersion": f"{RUNTIME}://0.1.0",
        "kernelVersion": RUNTIME,
        "kubeProxyVersion": "",
        "kubeletVersion": version,
        "machineID": "",
        "operatingSystem": "linux",
        "osImage": RUNTIME,
        "systemUUID": "",
    }


def lease(owner: ReadOnlyTree, now: datetime) -> dict[str, Any]:
    name = meta.name(owner)
    metadata = {"name": name, "namespace": NAMESPACE_NODE_LEASE, "ownerReferences": [_owned_by(owner)]}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {"leaseDurationSeconds": LEASE_SECONDS, **renewal(name, now)},
    }


def renewal(name: str, now: datetime) -> dict[str, str]:
    """What a Lease says anew with each heartbeat."""
    return {"holderIdentity": name, "renewTime": format_micro_time(now)}


def csi_node(owner: ReadOnlyTree) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": meta.name(owner), "ownerReferences": [_owned_by(owner)]},
        "spec": {"drivers": []},
    }


def _owned_by(owner: ReadOnlyTree) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Node", "name": meta.name(owner), "uid": meta.uid(owner)}
