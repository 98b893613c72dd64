"""The total requests of a pod: its containers run together, and its init containers one at a time."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from mockube.apimachinery import quantity
from mockube.apimachinery.pods import container_total, is_pod_level
from mockube.apimachinery.quantity import Quantity

Amounts: TypeAlias = Mapping[str, Quantity]


def amounts(resource_list: Mapping[str, Any] | None) -> Amounts:
    return {name: quantity.parse(amount) for name, amount in (resource_list or {}).items()}


def pod_total(spec: Mapping[str, Any], field: str) -> Amounts:
    """Return the total requests or limits of a pod, without its overhead."""
    total = container_total(spec, lambda container, _: amounts(container.get("resources", {}).get(field)))
    of_pod = amounts((spec.get("resources") or {}).get(field))
    return total | {name: amount for name, amount in of_pod.items() if is_pod_level(name)}
