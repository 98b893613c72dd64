"""A kubelet's admission of the pods that are bound to its node, and the status of a rejected pod.

Pure. Upstream: pkg/kubelet/lifecycle, predicate, and pkg/kubelet/sysctl.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta, wellknown
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.pods import dotted_sysctl
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.node_selectors import required_node_affinity
from mockube.client.component_helpers.pod_requests import CPU, MEMORY, PODS, Amounts, HostPort
from mockube.client.component_helpers.tolerations import find_untolerated_taint
from mockube.client.podview import FAILED
from mockube.kubelet.step_effects import EmitEvent, PatchObject, Step

from .pod_conditions import CONDITION_READY_TO_START
from .preemption import is_critical
from .resize import IN_PROGRESS, PENDING
from .status_patch import status_patch

_EPHEMERAL_STORAGE: Final = "ephemeral-storage"
_OS_LABEL: Final = "kubernetes.io/os"
_MIRROR: Final = "kubernetes.io/config.mirror"
_MEMORY_TAINT: Final = {"key": wellknown.TAINT_MEMORY_PRESSURE, "effect": "NoSchedule"}
_SAFE_SYSCTLS: Final[Mapping[str, tuple[str, str]]] = {
    "kernel.shm_rmid_forced": ("IPC", "hostIPC"),
    **dict.fromkeys(
        (
            "net.ipv4.ip_local_port_range",
            "net.ipv4.ip_local_reserved_ports",
            "net.ipv4.ip_unprivileged_port_start",
            "net.ipv4.ping_group_range",
            "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl",
            "net.ipv4.tcp_keepalive_probes",
            "net.ipv4.tcp_keepalive_time",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_syncookies",
            "net.ipv4.tcp_wmem",
        ),
        ("Net", "hostNetwork"),
    ),
}
"""The namespace of each sysctl, and the field of a pod that shares the node's namespace."""
_CONDITIONS: Final = frozenset(
    {
        wellknown.CONDITION_CONTAINERS_READY,
        wellknown.CONDITION_INITIALIZED,
        wellknown.CONDITION_POD_SCHEDULED,
        wellknown.CONDITION_READY,
        CONDITION_READY_TO_START,
        IN_PROGRESS,
        PENDING,
    }
)
"""The kubelet's conditions, which are absent from the status of a rejected pod."""
_PRESERVED_FIELDS: Final = (
    "extendedResourceClaimStatus",
    "nodeAllocatableResourceClaimStatuses",
    "qosClass",
    "resourceClaimStatuses",
    "startTime",
)


class PodRejection(NamedTuple):
    reason: str
    message: str


class NodeAllocation(NamedTuple):
    """A node's allocatable amounts, and the requests of its admitted pods."""

    allocatable: Amounts
    """Empty while the node does not report any."""
    requested: Amounts
    pods: int
    host_ports: Iterable[HostPort]


def is_admitted(pod: ReadOnlyTree) -> bool:
    """Return whether a kubelet has admitted the pod: it sets `startTime`, and admits its own mirror pods."""
    return "startTime" in (pod.get("status") or {}) or _MIRROR in meta.annotations(pod)


def admission_rejection(
    pod: ReadOnlyTree,
    node: ReadOnlyTree,
    requested: Amounts,
    ports: Sequence[HostPort],
    usage: NodeAllocation,
) -> PodRejection | None:
    """Return the first reason why the node cannot run the pod, or None. A critical pod's lack of resources is no reason."""
    spec = pod["spec"]
    return (
        _pressure_rejection(pod, node)
        or _sysctl_rejection(spec)
        or _os_rejection(pod, node)
        or (None if is_critical(pod) else _resource_rejection(requested, usage))
        or _predicate_rejection(spec, node, ports, usage)
    )


def _pressure_rejection(pod: ReadOnlyTree, node: ReadOnlyTree) -> PodRejection | None:
    """Reject any pod on a node that lacks disk, and a BestEffort pod on a node that lacks memory."""
    lacking = [kind for kind in ("MemoryPressure", "DiskPressure") if conditions.is_true(node, kind)]
    if not lacking or is_critical(pod):
        return None
    rejection = PodRejection("Evicted", f"The node had condition: [{' '.join(lacking)}]. ")
    if "DiskPressure" in lacking:
        return rejection
    is_best_effort = (pod.get("status") or {}).get("qosClass") == "BestEffort"
    if not is_best_effort or not find_untolerated_taint(pod["spec"], (_MEMORY_TAINT,), ("NoSchedule",)):
        return None
    return rejection


def _sysctl_rejection(spec: ReadOnlyTree) -> PodRejection | None:
    for sysctl in (spec.get("securityContext") or {}).get("sysctls") or ():
        name = dotted_sysctl(sysctl["name"])
        namespace, field = _SAFE_SYSCTLS.get(name, ("", ""))
        if not namespace:
            return PodRejection("SysctlForbidden", f"forbidden sysctl: {quote(name)} not allowlisted")
        if spec.get(field):
            problem = f"{quote(name)} not allowed with host {namespace} enabled"
            return PodRejection("SysctlForbidden", f"forbidden sysctl: {problem}")
    return None


def _os_rejection(pod: ReadOnlyTree, node: ReadOnlyTree) -> PodRejection | None:
    """Check the pod's OS. The node's OS is read from the Node, because a simulated node may have any OS."""
    spec, labels = pod["spec"], meta.labels(pod)
    if "os" not in spec and _OS_LABEL not in labels:
        return None
    info = (node.get("status") or {}).get("nodeInfo") or {}
    system = info.get("operatingSystem") or meta.labels(node).get(_OS_LABEL) or "linux"
    if labels.get(_OS_LABEL, system) != system:
        return PodRejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if (spec.get("os") or {}).get("name", system) != system:
        return PodRejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _resource_rejection(requested: Amounts, usage: NodeAllocation) -> PodRejection | None:
    for name, amount, used in _amounts_by_resource(requested, usage) if usage.allocatable else ():
        capacity = usage.allocatable[name]
        if amount > capacity - used:
            counts = f"requested: {amount}, used: {used}, capacity: {capacity}"
            return PodRejection(f"OutOf{name}", f"Node didn't have enough resource: {name}, {counts}")
    return None


def resource_shortage(requested: Amounts, usage: NodeAllocation) -> dict[str, int]:
    """Return the missing amount of each resource; empty if the node has enough."""
    amounts = _amounts_by_resource(requested, usage) if usage.allocatable else ()
    missing = {name: request + used - usage.allocatable[name] for name, request, used in amounts}
    return {name: amount for name, amount in missing.items() if amount > 0}


def _amounts_by_resource(requested: Amounts, usage: NodeAllocation) -> Iterator[tuple[str, int, int]]:
    """Yield each requested resource in upstream's order, with its requested and its used amount."""
    yield PODS, 1, usage.pods
    first = (CPU, MEMORY, _EPHEMERAL_STORAGE)
    for name in (*first, *(name for name in requested if name not in first)):
        if requested[name] > 0 and (name in usage.allocatable or not _is_extended(name)):
            yield name, requested[name], usage.requested[name]


def _is_extended(name: str) -> bool:
    """Return whether a resource is an extended resource: one that a node lacks may belong to a resource claim."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def _predicate_rejection(
    spec: ReadOnlyTree, node: ReadOnlyTree, ports: Sequence[HostPort], usage: NodeAllocation
) -> PodRejection | None:
    matches = required_node_affinity(spec)
    if matches is not None and not matches(node):
        return _rejection("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if any(port.conflicts(used_port) for used_port in usage.host_ports for port in ports):
        return _rejection("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    taints = (node.get("spec") or {}).get("taints") or ()
    if find_untolerated_taint(spec, taints, ("NoExecute",)):
        return _rejection("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _rejection(predicate: str, reason: str) -> PodRejection:
    return PodRejection(predicate, f"Predicate {predicate} failed: {reason}")


def reject(pod: ReadOnlyTree, rejection: PodRejection, now: datetime) -> Step:
    """Return the step that records the rejection of a pod: an event, and the phase Failed without container statuses."""
    old = pod.get("status") or {}
    status: dict[str, Any] = {
        "startTime": format_time(now),
        **{field: old[field] for field in _PRESERVED_FIELDS if field in old},
        "conditions": [condition for condition in conditions.of(pod) if condition["type"] not in _CONDITIONS],
        "message": f"Pod was rejected: {rejection.message}",
        "observedGeneration": meta.generation(pod),
        "phase": FAILED,
        "reason": rejection.reason,
    }
    # The uid prevents the patch from changing another pod of the same name.
    body = {"metadata": {"uid": meta.uid(pod)}, "status": status_patch(old, status)}
    return Step(effects=(EmitEvent("Warning", *rejection), PatchObject(body=body)))
