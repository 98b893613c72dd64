"""OpenKruise's launch priorities: containers of a pod start one after the other, those of the highest priority first.

Each container has a variable that refers to a key of the pod's barrier, a ConfigMap. A kubelet does not start a container
whose key is missing; a controller adds the keys in the order of the priorities. Pure.
"""

from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree

ANNOTATION_ORDER: Final = "apps.kruise.io/container-launch-priority"
ORDERED: Final = "Ordered"
"""The value of the annotation with which the containers start in their order in the pod."""
ENV_PRIORITY: Final = "KRUISE_CONTAINER_PRIORITY"
ENV_BARRIER: Final = "KRUISE_CONTAINER_BARRIER"
_KEY_PREFIX: Final = "p_"


def barrier_name(pod_name: str) -> str:
    return f"{pod_name}-barrier"


def barrier_key(priority: int) -> str:
    return f"{_KEY_PREFIX}{priority}"


def barrier_variable(pod_name: str, priority: int) -> dict[str, Any]:
    """Return the variable with which a container waits for its turn."""
    selector = {"name": barrier_name(pod_name), "key": barrier_key(priority)}
    return {"name": ENV_BARRIER, "valueFrom": {"configMapKeyRef": selector}}


def launch_priority(container: ReadOnlyTree) -> int | None:
    """Return the priority in a container's barrier variable; None if it has none."""
    for variable in container.get("env") or ():
        if variable["name"] == ENV_BARRIER:
            key = ((variable.get("valueFrom") or {}).get("configMapKeyRef") or {}).get("key") or ""
            return _number(key.removeprefix(_KEY_PREFIX)) if key.startswith(_KEY_PREFIX) else None
    return None


def _number(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS else None


_MAX_DIGITS: Final = 19
"""The digits of the largest number of 64 bits."""
