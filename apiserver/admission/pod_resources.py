"""The total requests of a pod: its containers run together, and its init containers one at a time."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import Quantity

Amounts: TypeAlias = Mapping[str, Quantity]

POD_LEVEL = frozenset({"cpu", "memory"})
"""Pod-level resources, besides huge pages: containers share them."""


def amounts(resource_list: Mapping[str, Any] | None) -> Amounts:
    return {name: quantity.parse(amount) for name, amount in (resource_list or {}).items()}


def pod_total(spec: Mapping[str, Any], field: str) -> Amounts:
    """Return the total requests or limits of a pod."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts_of(container, field))
    before, sidecars = dict[str, Quantity](), dict[str, Quantity]()
    for container in spec.get("initContainers") or ():
        container_amounts = _amounts_of(container, field)
        if container.get("restartPolicy") == "Always":
            # A sidecar runs beside all later containers.
            _add(total, container_amounts)
            _add(sidecars, container_amounts)
            container_amounts = {name: sidecars[name] for name in container_amounts}
        else:
            container_amounts = {
                name: amount + sidecars[name] if name in sidecars else amount
                for name, amount in container_amounts.items()
            }
        # Resources that this container does not request stay as before.
        _raise(before, container_amounts)
    of_pod = amounts((spec.get("resources") or {}).get(field))
    shared = {
        name: amount for name, amount in of_pod.items() if name in POD_LEVEL or name.startswith("hugepages-")
    }
    _raise(total, before)
    return total | shared


def _amounts_of(container: Mapping[str, Any], field: str) -> Amounts:
    return amounts(container.get("resources", {}).get(field))


def _add(amounts: dict[str, Quantity], more: Amounts) -> None:
    for name, amount in more.items():
        amounts[name] = amounts[name] + amount if name in amounts else amount


def _raise(amounts: dict[str, Quantity], minimum: Amounts) -> None:
    for name, amount in minimum.items():
        amounts[name] = max(amounts[name], amount) if name in amounts else amount
