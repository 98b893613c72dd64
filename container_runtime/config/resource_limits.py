"""The limits of a container's resources. Pure."""

from math import inf

from mockube.apimachinery.quantity import number_or
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONTAINER_STATUSES


def limit_of(pod: ReadOnlyTree, container: ReadOnlyTree, resource: str) -> float | None:
    """Return the limit of a container in bytes or cores, or that of its pod if it is lower; None without one."""
    limits = [
        limit
        for resources in (resources_of(pod, container), pod["spec"].get("resources") or {})
        if (limit := (resources.get("limits") or {}).get(resource)) is not None
    ]
    return min((number_or(limit, inf) for limit in limits), default=None)


def resources_of(pod: ReadOnlyTree, container: ReadOnlyTree) -> ReadOnlyTree:
    """Return the resources that a container has: those in its status until a resize is applied, or else those in its specification."""
    status = pod.get("status") or {}
    for field in CONTAINER_STATUSES:
        for container_status in status.get(field) or ():
            if container_status.get("name") == container["name"] and container_status.get("resources"):
                actual: ReadOnlyTree = container_status["resources"]
                return actual
    return container.get("resources") or {}
