"""What pods and Services may not ask for: LimitPodHardAntiAffinityTopology, DenyServiceExternalIPs, PodResizeValidator."""

from collections.abc import Iterator
from math import ceil
from typing import Final

from mockube.apimachinery import quantity, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.quota.pod_amounts import pod_requests
from mockube.apimachinery.status import Cause
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.plugin import PODS, UPDATE, WRITE, Plugin, forbidden
from mockube.apiserver.registry.attributes import Attributes
from mockube.apiserver.registry.backend import Backend

_HOSTNAME: Final = "kubernetes.io/hostname"
_OS: Final = "kubernetes.io/os"
_NODES: Final = GroupResource("", "nodes")


class LimitPodHardAntiAffinityTopology(Plugin):
    operations = WRITE
    about = PODS

    async def validate(self, _backend: Backend, attributes: Attributes) -> None:
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
    operations = WRITE
    about = frozenset({("", "services", "")})

    async def validate(self, _backend: Backend, attributes: Attributes) -> None:
        new, old = attributes.object or {}, attributes.old or {}
        wanted, given = ((tree.get("spec") or {}).get("externalIPs") or () for tree in (new, old))
        if not set(wanted) <= set(given):
            raise forbidden(attributes, "Use of external IPs is denied by admission control")


class PodResizeValidator(Plugin):
    """A resize has to fit onto the pod's node."""

    operations = UPDATE
    about = frozenset({("", "pods", "resize")})

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        pod, old = attributes.object, attributes.old
        assert pod is not None
        assert old is not None
        name = pod["spec"].get("nodeName")
        if not name or pod["metadata"].get("generation") == old["metadata"].get("generation"):
            return
        stored = backend.seen(_NODES, "", name)
        if stored is None:
            raise forbidden(attributes, f"node {quote(name)} not found")
        system = stored.labels.get(_OS, "linux")
        if system != "linux":
            problem = f"pod resize is only supported on linux nodes, node {quote(name)} is {quote(system)}"
            raise forbidden(attributes, problem, [Cause(reason="UnsupportedPlatform")])
        lacking = "; ".join(_lacking(pod, stored.tree()))
        if lacking:
            problem = f"node didn't have enough allocatable resources: {lacking}"
            raise forbidden(attributes, problem, [Cause(reason="NodeCapacity")])


def _lacking(pod: ReadOnlyTree, node: ReadOnlyTree) -> Iterator[str]:
    requests = pod_requests({"spec": pod["spec"], "metadata": pod["metadata"]})
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    for name, scale in (("cpu", 1000), ("memory", 1)):
        room = quantity.parse(allocatable.get(name, "0"))
        if name in requests and requests[name].number > room.number:
            wanted, there = (ceil(amount.number * scale) for amount in (requests[name], room))
            yield f"{name}, requested: {wanted}, allocatable: {there}"
