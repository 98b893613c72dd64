"""Plugins that refuse requests of pods and Services: LimitPodHardAntiAffinityTopology, DenyServiceExternalIPs,
NodeDeclaredFeatureValidator and PodResizeValidator.
"""

from collections.abc import Iterator
from math import ceil
from typing import Final

from mockube.apimachinery import quantity, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import NODES
from mockube.apimachinery.quota.pod_amounts import pod_requests
from mockube.apimachinery.status import Cause
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Target

from . import plugin
from .plugin import Plugin

_HOSTNAME: Final = "kubernetes.io/hostname"
_OS: Final = "kubernetes.io/os"
RESIZE: Target = "", "pods", "resize"


class LimitPodHardAntiAffinityTopology(Plugin):
    operations = plugin.WRITE
    targets = plugin.PODS

    async def validate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        affinity = (pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            if term.get("topologyKey") != _HOSTNAME:
                problem = "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey"
                allowed = f"but only key {_HOSTNAME} is allowed"
                raise status.forbidden(
                    attributes.resource.group_resource,
                    pod["metadata"].get("name", ""),
                    f"{problem} {term.get('topologyKey', '')} {allowed}",
                )


class DenyServiceExternalIPs(Plugin):
    operations = plugin.WRITE
    targets = frozenset({("", "services", "")})

    async def validate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        new, old = attributes.object or {}, attributes.old or {}
        new_ips, old_ips = ((tree.get("spec") or {}).get("externalIPs") or () for tree in (new, old))
        if not set(new_ips) <= set(old_ips):
            raise plugin.forbidden(attributes, "Use of external IPs is denied by admission control")


class NodeDeclaredFeatureValidator(Plugin):
    """Rejects changes of a pod that need a feature which the kubelet of its node does not declare."""

    operations = plugin.UPDATE
    targets = frozenset({plugin.POD, RESIZE})

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod, old = attributes.object, attributes.old
        assert pod is not None
        assert old is not None
        name = pod["spec"].get("nodeName")
        if not name or pod["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        needed = [feature for feature, is_used in _FEATURES if is_used(old["spec"], pod["spec"])]
        if not needed:
            return
        stored = backend.find_cached(NODES, "", name)
        if stored is None:
            raise plugin.forbidden(attributes, f"node {quote(name)} not found")
        declared = (stored.tree().get("status") or {}).get("declaredFeatures") or ()
        if missing_text := ", ".join(feature for feature in needed if feature not in declared):
            problem = (
                f"pod update requires features {missing_text} which are not available on node {quote(name)}"
            )
            raise plugin.forbidden(attributes, problem)


def _resizes_pod(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    return old.get("resources") != new.get("resources")


def _resizes_init_containers(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    """Return whether an init container is resized; sidecars do not count, because they are resized like containers."""
    pairs = zip(old.get("initContainers") or (), new.get("initContainers") or (), strict=False)
    return any(
        before.get("restartPolicy") != "Always"
        and (before.get("resources") or {}) != (after.get("resources") or {})
        for before, after in pairs
    )


_FEATURES: Final = (
    ("InPlacePodLevelResourcesVerticalScaling", _resizes_pod),
    ("InPlacePodVerticalScalingInitContainers", _resizes_init_containers),
)
"""Features that a change can need, in the order of their names."""


class PodResizeValidator(Plugin):
    """Rejects a resize that does not fit onto the pod's node."""

    operations = plugin.UPDATE
    targets = frozenset({RESIZE})

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        pod, old = attributes.object, attributes.old
        assert pod is not None
        assert old is not None
        name = pod["spec"].get("nodeName")
        if not name or pod["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        stored = backend.find_cached(NODES, "", name)
        if stored is None:
            raise plugin.forbidden(attributes, f"node {quote(name)} not found")
        system = stored.labels.get(_OS, "linux")
        if system != "linux":
            problem = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
            raise plugin.forbidden(attributes, problem, [Cause(reason="UnsupportedPlatform")])
        missing_text = "; ".join(_missing_resources(pod, stored.tree()))
        if missing_text:
            problem = f"node didn't have enough allocatable resources: {missing_text}"
            raise plugin.forbidden(attributes, problem, [Cause(reason="NodeCapacity")])


def _missing_resources(pod: ReadOnlyTree, node: ReadOnlyTree) -> Iterator[str]:
    requests = pod_requests({"spec": pod["spec"], "metadata": pod["metadata"]})
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for name, scale in (("cpu", 1000), ("memory", 1)):
        node_amount = quantity.parse(allocatable.get(name, "0"))
        if name in requests and requests[name].number > node_amount.number:
            requested, available = (ceil(amount.number * scale) for amount in (requests[name], node_amount))
            yield f"{name}, requested: {requested}, allocatable: {available}"
