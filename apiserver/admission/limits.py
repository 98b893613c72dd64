"""What a pod asks for in all: of its containers, which run at once, and of those before them, one after the other."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from apimachinery import quantity
from apimachinery.quantity import Quantity

Amounts: TypeAlias = Mapping[str, Quantity]

POD_LEVEL = frozenset({"cpu", "memory"})
"""What a pod may ask for itself, and huge pages; what it then asks for, its containers share."""


def amounts(listed: Mapping[str, Any] | None) -> Amounts:
    return {name: quantity.parse(amount) for name, amount in (listed or {}).items()}


def pod_total(spec: Mapping[str, Any], field: str) -> Amounts:
    """The pod's requests or limits."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = _sum(total, _of(container, field))
    before, sidecars = dict[str, Quantity](), dict[str, Quantity]()
    for container in spec.get("initContainers") or ():
        asked = _of(container, field)
        if container.get("restartPolicy") == "Always":
            # It goes on to run beside everything after it.
            total, sidecars = _sum(total, asked), dict(_sum(sidecars, asked))
            asked = sidecars
        else:
            asked = _sum(asked, sidecars)
        before = dict(_most(before, asked))
    of_pod = amounts((spec.get("resources") or {}).get(field))
    shared = {
        name: amount for name, amount in of_pod.items() if name in POD_LEVEL or name.startswith("hugepages-")
    }
    return {**_most(total, before), **shared}


def _of(container: Mapping[str, Any], field: str) -> Amounts:
    return amounts(container.get("resources", {}).get(field))


def _sum(left: Amounts, right: Amounts) -> Amounts:
    added = {name: left[name] + amount if name in left else amount for name, amount in right.items()}
    return {**left, **added}


def _most(left: Amounts, right: Amounts) -> Amounts:
    larger = {name: max(left[name], amount) if name in left else amount for name, amount in right.items()}
    return {**left, **larger}
