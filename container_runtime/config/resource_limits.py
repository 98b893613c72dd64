"""The limits of a container's resources. Pure."""

from math import inf

from mockube.apimachinery.quantity import number_or
from mockube.apimachinery.tree import ReadOnlyTree


def limit_of(pod: ReadOnlyTree, container: ReadOnlyTree, resource: str) -> float | None:
    """Return the limit of a container in bytes or cores, or that of its pod if it is lower; None without one."""
    limits = [
        limit
        for part in (container, pod["spec"])
        if (limit := ((part.get("resources") or {}).get("limits") or {}).get(resource)) is not None
    ]
    return min((number_or(limit, inf) for limit in limits), default=None)
