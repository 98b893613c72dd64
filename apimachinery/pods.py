"""Access to a pod's spec for both processes: its containers and their total resources, its Secrets, and its sysctls."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from . import conditions, meta
from .resource_names import HUGE_PAGES
from .tree import ReadOnlyTree
from .wellknown import CONDITION_NOT_SIMULATED

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_WITH_SECRET_NAME: Final = ("secret", "azureFile")
_SECRET_REFERENCES: Final = {
    **dict.fromkeys(("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"), "secretRef"),
    "csi": "nodePublishSecretRef",
}
"""The field of a volume's source that references a Secret."""
_POD_LEVEL: Final = frozenset({"cpu", "memory"})
"""The resources that a pod can have itself, besides huge pages: its containers share them."""

Number = TypeVar("Number", bound=Any)
"""An amount of a resource: a Quantity, or an integer."""


def assumption_of(pod: ReadOnlyTree) -> str:
    """Return which programs and probes of a simulated pod were not run, so that its state is assumed; "" if all were."""
    condition = conditions.get(pod, CONDITION_NOT_SIMULATED) or {}
    return str(condition.get("message") or "") if condition.get("status") == "True" else ""


def every_container(spec: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield the init containers, the containers and the ephemeral containers of a pod."""
    for field in _CONTAINERS:
        yield from spec.get(field) or ()


def secret_names(spec: ReadOnlyTree) -> Iterator[Any]:
    """Yield the names of the Secrets that a pod references: image pull secrets, environments and volumes. A name can be empty."""
    yield from (reference.get("name") for reference in spec.get("imagePullSecrets") or ())
    for container in every_container(spec):
        for source in container.get("envFrom") or ():
            yield (source.get("secretRef") or {}).get("name")
        for variable in container.get("env") or ():
            yield ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
    for volume in spec.get("volumes") or ():
        yield from _secret_names_of_volume(volume)


def _secret_names_of_volume(volume: ReadOnlyTree) -> Iterator[Any]:
    yield from ((volume.get(source) or {}).get("secretName") for source in _WITH_SECRET_NAME)
    for source, field in _SECRET_REFERENCES.items():
        yield ((volume.get(source) or {}).get(field) or {}).get("name")
    for projected in (volume.get("projected") or {}).get("sources") or ():
        yield (projected.get("secret") or {}).get("name")


def dotted_sysctl(name: str) -> str:
    """Return a sysctl with dots as separators. If the separators are slashes, dots in the parts become slashes."""
    separator = re.search(r"[./]", name)
    if separator is None or separator[0] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))


def container_total(
    spec: ReadOnlyTree, amounts_of: Callable[[ReadOnlyTree, bool], Mapping[str, Number]]
) -> dict[str, Number]:
    """Return the total of the containers that run together, or of an init container and the sidecars before it where that is more.

    `amounts_of` returns the amounts of a container; its second argument is whether the container runs until the pod ends.
    """
    total: dict[str, Number] = {}
    for container in spec.get("containers") or ():
        _add(total, amounts_of(container, True))  # noqa: FBT003 - see above
    sidecars: dict[str, Number] = {}
    highest: dict[str, Number] = {}
    for container in spec.get("initContainers") or ():
        is_sidecar = container.get("restartPolicy") == "Always"
        amounts = amounts_of(container, is_sidecar)
        if is_sidecar:
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = {name: sidecars[name] for name in amounts}
        else:
            amounts = {
                name: amount + sidecars[name] if name in sidecars else amount
                for name, amount in amounts.items()
            }
        # The highest amount of a resource that this container does not have is unchanged.
        _raise(highest, amounts)
    _raise(total, highest)
    return total


def _add(amounts: dict[str, Number], more: Mapping[str, Number]) -> None:
    for name, amount in more.items():
        amounts[name] = amounts[name] + amount if name in amounts else amount


def _raise(amounts: dict[str, Number], minimum: Mapping[str, Number]) -> None:
    for name, amount in minimum.items():
        amounts[name] = max(amounts[name], amount) if name in amounts else amount


def is_pod_level(resource: str) -> bool:
    """Return whether a pod itself can have requests and limits of a resource."""
    return resource in _POD_LEVEL or resource.startswith(HUGE_PAGES)


def claim_name(pod: ReadOnlyTree, volume: ReadOnlyTree) -> str:
    """Return the name of the claim of a pod's volume; that of an ephemeral volume is derived from both names."""
    source = volume.get("persistentVolumeClaim") or {}
    return str(source.get("claimName") or f"{meta.name(pod)}-{volume['name']}")
