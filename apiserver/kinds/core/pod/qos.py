"""The QoS class of a pod, which follows from the resources of its containers."""

from collections.abc import Iterable, Mapping
from typing import Any

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import Quantity

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
COMPUTE = frozenset({"cpu", "memory"})


def qos_class(pod: Mapping[str, Any]) -> str:
    """Return the QoS class of a pod. Ephemeral containers do not count: they have no resource requirements."""
    spec = pod.get("spec", {})
    if spec.get("resources") is not None:
        requirements = [spec["resources"]]
    else:
        containers = (*(spec.get("containers") or ()), *spec.get("initContainers", ()))
        requirements = [container.get("resources", {}) for container in containers]
    requests = _total(resources.get("requests") for resources in requirements)
    limits = _total(resources.get("limits") for resources in requirements)
    if not requests and not limits:
        return BEST_EFFORT
    is_limited = all(_compute(resources.get("limits")).keys() >= COMPUTE for resources in requirements)
    return GUARANTEED if is_limited and requests == limits else BURSTABLE


def _total(lists: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Quantity]:
    total: dict[str, Quantity] = {}
    for resource_list in lists:
        for name, amount in _compute(resource_list).items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _compute(resource_list: Mapping[str, Any] | None) -> Mapping[str, Quantity]:
    """Return the amounts above zero of compute resources."""
    if not resource_list:
        return {}
    read = {name: quantity.parse(amount) for name, amount in resource_list.items() if name in COMPUTE}
    return {name: amount for name, amount in read.items() if amount.number > 0}
