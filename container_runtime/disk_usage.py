"""How much of a node's disk a pod uses, and which of its limits that exceeds. Pure.

Upstream: pkg/kubelet/eviction/eviction_manager.go, localStorageEviction.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mockube.apimachinery import quantity
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree

EPHEMERAL_STORAGE: Final = "ephemeral-storage"
DISK_BYTES: Final = 100 << 30
"""The disk of a node that does not say how large it is."""


class DiskUsage(NamedTuple):
    """The bytes that a pod uses on the disk of its node."""

    containers: Mapping[str, int]
    """What the containers have written besides volumes, with their logs, by name."""
    volumes: Mapping[str, int]
    """The contents of the pod's own volumes, by name."""


def disk_size(node: ReadOnlyTree) -> int:
    """Return the bytes of a node's disk."""
    capacity = (node.get("status") or {}).get("capacity") or {}
    return quantity.scaled_value_or(capacity.get(EPHEMERAL_STORAGE), 0) or DISK_BYTES


def has_disk_limits(pod: ReadOnlyTree) -> bool:
    """Return whether a pod limits what it may use of its node's disk."""
    return any(_empty_dirs(pod)) or any(_limit(container) for container in every_container(pod["spec"]))


def exceeded_limit(pod: ReadOnlyTree, usage: DiskUsage) -> str:
    """Return the message about a limit that a pod exceeds; "" if it exceeds none."""
    for name, limit in _empty_dirs(pod):
        if usage.volumes.get(name, 0) > quantity.scaled_value_or(limit, 0) > 0:
            return f'Usage of EmptyDir volume "{name}" exceeds the limit "{limit}". '
    limits = [limit for container in pod["spec"]["containers"] if (limit := _limit(container))]
    if limits:
        total = sum((quantity.from_json(limit) for limit in limits[1:]), quantity.from_json(limits[0]))
        if sum(usage.containers.values()) + sum(usage.volumes.values()) > total.scaled_value(0):
            return f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
    for container in every_container(pod["spec"]):
        limit = _limit(container)
        if limit and usage.containers.get(container["name"], 0) > quantity.scaled_value_or(limit, 0):
            return f'Container {container["name"]} exceeded its local ephemeral storage limit "{limit}". '
    return ""


def _empty_dirs(pod: ReadOnlyTree) -> Iterator[tuple[str, Any]]:
    """Yield the names and limits of the emptyDirs on the disk; those in memory have a size of their own."""
    for volume in pod["spec"].get("volumes") or ():
        source = volume.get("emptyDir") or {}
        if source.get("sizeLimit") and source.get("medium") != "Memory":
            yield volume["name"], source["sizeLimit"]


def _limit(container: ReadOnlyTree) -> Any:
    return ((container.get("resources") or {}).get("limits") or {}).get(EPHEMERAL_STORAGE)
