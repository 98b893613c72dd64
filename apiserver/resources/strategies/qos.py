"""The quality of service that a pod asks for: how far it says what it needs and what it may use."""

from collections.abc import Iterable, Mapping
from typing import Any

from apimachinery import quantity
from apimachinery.quantity import Quantity

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
COMPUTE = frozenset({"cpu", "memory"})


def qos_class(pod: Mapping[str, Any]) -> str:
    """Ephemeral containers do not count: they cannot ask for anything."""
    spec = pod.get("spec", {})
    if spec.get("resources") is not None:
        asked = [spec["resources"]]
    else:
        containers = (*(spec.get("containers") or ()), *spec.get("initContainers", ()))
        asked = [container.get("resources", {}) for container in containers]
    requests = _total(resources.get("requests") for resources in asked)
    limits = _total(resources.get("limits") for resources in asked)
    if not requests and not limits:
        return BEST_EFFORT
    is_limited = all(_compute(resources.get("limits")).keys() >= COMPUTE for resources in asked)
    return GUARANTEED if is_limited and requests == limits else BURSTABLE


def _total(lists: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Quantity]:
    total: dict[str, Quantity] = {}
    for asked in lists:
        for name, amount in _compute(asked).items():
            total[name] = total[name] + amount if name in total else amount
    return total


def _compute(asked: Mapping[str, Any] | None) -> Mapping[str, Quantity]:
    """What is asked for of the resources that count, without what is nothing."""
    if not asked:
        return {}
    read = {name: quantity.parse(amount) for name, amount in asked.items() if name in COMPUTE}
    return {name: amount for name, amount in read.items() if amount.number > 0}
