"""The extended resources that device classes provide, and the requests for devices that replace them. Pure.

Upstream: plugins/dynamicresources (extendeddynamicresources.go), deviceclass/extendedresourcecache.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.resource_names import (
    EXTENDED_RESOURCE_CLAIM,
    IMPLICIT_DEVICES,
    is_extended_resource_claim,
)
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.component_helpers.pod_requests import amounts
from mockube.client.podview import PodView

NAME_IN_MEMORY: Final = "<extended-resources>"
"""The name of a claim that the API server has not created yet."""


class ExtendedResourceClasses:
    """The device class of each extended resource; upstream's ExtendedResourceCache, with its flaws.

    A class that names a resource of a preferred class changes nothing: it does not provide its implicit resource, and
    still provides what it provided before. The resource of a deleted or renamed class is removed even if another class
    provides it.
    """

    def __init__(self) -> None:
        self.by_resource: dict[str, ReadOnlyTree] = {}

    def handle(self, change: Change) -> None:
        if change.new is None:
            self._remove(change.last_known)
            return
        resource = _resource_of(change.new)
        other = self.by_resource.get(resource)
        if other is not None and not _is_preferred(change.new, other):
            return  # Before the old names are removed, as upstream's updateResourceName2class does.
        if change.old is not None:
            self._remove(change.old)
        if resource:
            self.by_resource[resource] = change.new
        self.by_resource[IMPLICIT_DEVICES + meta.name(change.new)] = change.new

    def _remove(self, device_class: ReadOnlyTree) -> None:
        for resource in (IMPLICIT_DEVICES + meta.name(device_class), _resource_of(device_class)):
            self.by_resource.pop(resource, None)


def _resource_of(device_class: ReadOnlyTree) -> str:
    return (device_class.get("spec") or {}).get("extendedResourceName") or ""


def _is_preferred(device_class: ReadOnlyTree, other: ReadOnlyTree) -> bool:
    """Return whether a class provides a resource that another one names, too: the newer, or the first by name."""
    created, other_created = (
        meta.metadata(candidate).get("creationTimestamp") or "" for candidate in (device_class, other)
    )
    if created != other_created:
        return bool(created > other_created)
    return meta.name(device_class) < meta.name(other)


def provided_resources(requested: Collection[str], classes: Mapping[str, ReadOnlyTree]) -> list[str]:
    """Return the requested resources that device classes provide, sorted by name."""
    return sorted(name for name in requested if name in classes)


def owner_of_extended_resource_claim(claim: ReadOnlyTree) -> Iterator[str]:
    """Yield the uid of the owner of a claim for extended resources, for an index."""
    owner = meta.controller_of(claim)
    if owner is not None and is_extended_resource_claim(claim):
        yield owner["uid"]


class DeviceRequests(NamedTuple):
    """The requests of a claim for extended resources, and which of them each container uses for a resource."""

    requests: Sequence[Mapping[str, Any]]
    mappings: Sequence[Mapping[str, str]]


def claim_for(pod: PodView, requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the claim for a pod's extended resources before its creation."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.key.name,
        "uid": pod.uid,
        "controller": True,
    }
    metadata = {
        "name": NAME_IN_MEMORY,
        "namespace": pod.key.namespace,
        "uid": f"{pod.uid} {NAME_IN_MEMORY}",
        "generateName": f"{pod.key.name}-extended-resources-",
        "annotations": {EXTENDED_RESOURCE_CLAIM: "true"},
        "ownerReferences": [owner],
    }
    devices = {"requests": [*requests]} if requests else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": devices},
    }


def requests_for(
    spec: ReadOnlyTree, resources: Collection[str], classes: Mapping[str, ReadOnlyTree]
) -> DeviceRequests:
    """Return the requests for devices that replace some extended resources of a pod."""
    requests: list[dict[str, Any]] = []
    mappings: list[dict[str, str]] = []
    for resource in sorted(resources):
        of_resource = _ResourceRequests(resource, meta.name(classes[resource]))
        of_resource.add_containers(spec)
        requests += of_resource.requests
        mappings += of_resource.mappings
    return DeviceRequests(sorted(requests, key=lambda request: request["name"]), mappings)


class _ResourceRequests(Struct):
    """The requests for one extended resource.

    Containers that run together have one request each. Init containers use the requests of later containers, and
    together one request for the largest amount that is missing then.
    """

    resource: str
    device_class: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    mappings: list[dict[str, str]] = field(default_factory=list)

    def add_containers(self, spec: ReadOnlyTree) -> None:
        init_containers: Sequence[ReadOnlyTree] = spec.get("initContainers") or ()
        containers = [*init_containers, *(spec.get("containers") or ())]
        by_container: dict[int, dict[str, Any]] = {}
        init_indices: list[int] = []
        for index, container in enumerate(containers):
            if index < len(init_containers) and container.get("restartPolicy") != "Always":
                init_indices.append(index)
            elif amount := self._amount(container):
                request = by_container[index] = self._request(index, container, amount)
                self._map(container, request["name"])
        self._add_init_containers(containers, init_indices, by_container)
        self.requests += by_container.values()

    def _add_init_containers(
        self,
        containers: Sequence[ReadOnlyTree],
        indices: Sequence[int],
        by_container: Mapping[int, Mapping[str, Any]],
    ) -> None:
        own_requests: dict[int, dict[str, Any]] = {}
        used: list[tuple[int, str | None]] = []
        for index in indices:
            missing = self._amount(containers[index])
            later = [request for number, request in sorted(by_container.items()) if number >= index]
            while missing > 0 and later:
                request = later.pop(0)
                missing -= request["exactly"]["count"]
                used.append((index, request["name"]))
            if missing > 0:
                own_requests[index] = self._request(index, containers[index], missing)
                used.append((index, None))
        largest = max(own_requests.values(), key=lambda request: request["exactly"]["count"], default=None)
        self.requests += [] if largest is None else [largest]
        for index, name in used:
            self._map(containers[index], name or (largest or {})["name"])

    def _amount(self, container: ReadOnlyTree) -> int:
        return amounts((container.get("resources") or {}).get("requests"))[self.resource]

    def _request(self, index: int, container: ReadOnlyTree, count: int) -> dict[str, Any]:
        number = sorted(container["resources"]["requests"]).index(self.resource)
        exactly = {"deviceClassName": self.device_class, "allocationMode": "ExactCount", "count": count}
        return {"name": f"container-{index}-request-{number}", "exactly": exactly}

    def _map(self, container: ReadOnlyTree, request: str) -> None:
        self.mappings.append(
            {"containerName": container["name"], "resourceName": self.resource, "requestName": request}
        )
