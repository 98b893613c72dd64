"""The QoS class of a pod, which follows from the resources of its containers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import Quantity

from .pod_level import has_pod_level

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
COMPUTE: Final = frozenset({"cpu", "memory"})


def qos_class(pod: Mapping[str, Any]) -> str:
    """Return the QoS class of a pod. Ephemeral containers do not count: they have no resource requirements."""
    spec = pod.get("spec") or {}
    return _class_of([spec["resources"]] if has_pod_level(spec.get("resources")) else [*_of_containers(spec)])


def older_qos_class(pod: Mapping[str, Any]) -> str:
    """Return the QoS class in minors before 1.37: resources of the pod count even if they are empty."""
    spec = pod.get("spec") or {}
    return _class_of([spec["resources"]] if spec.get("resources") is not None else [*_of_containers(spec)])


def _of_containers(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("containers", "initContainers"):
        yield from (container.get("resources") or {} for container in spec.get(name) or ())


def _class_of(requirements: Iterable[Mapping[str, Any]]) -> str:
    """Return the class that all requirements have; without a common one, the pod is burstable."""
    classes = {_class_of_amount(resources, name) for resources in requirements for name in COMPUTE} or {
        BEST_EFFORT
    }
    return classes.pop() if len(classes) == 1 else BURSTABLE


def _class_of_amount(resources: Mapping[str, Any], name: str) -> str:
    requested, limit = (_amount(resources.get(field), name) for field in ("requests", "limits"))
    if requested != limit:
        return BURSTABLE
    return GUARANTEED if limit else BEST_EFFORT


def _amount(amounts: Mapping[str, Any] | None, name: str) -> Quantity | None:
    """Return an amount; None for nothing."""
    text = (amounts or {}).get(name)
    amount = None if text is None else quantity.parse(text)
    return amount if amount is not None and amount.number else None
