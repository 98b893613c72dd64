"""The limits of a container's resources. Pure."""

from math import inf
from typing import Any

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import QuantityError
from mockube.apimachinery.tree import ReadOnlyTree


def limit_of(pod: ReadOnlyTree, container: ReadOnlyTree, resource: str) -> float | None:
    """Return the limit of a container in bytes or cores, or that of its pod if it is lower; None without one."""
    limits = [
        limit
        for part in (container, pod["spec"])
        if (limit := ((part.get("resources") or {}).get("limits") or {}).get(resource)) is not None
    ]
    return min(map(amount, limits), default=None)


def amount(value: Any) -> float:
    """Return a quantity in bytes or cores; infinite if there is none."""
    try:
        return inf if value is None else float(quantity.from_json(value).number)
    except QuantityError:
        return inf
