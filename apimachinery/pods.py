"""Access to a pod's spec for both processes: its containers, the Secrets that it references, and its sysctls."""

import re
from collections.abc import Iterator
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_WITH_SECRET_NAME: Final = ("secret", "azureFile")
_SECRET_REFERENCES: Final = {
    **dict.fromkeys(("cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"), "secretRef"),
    "csi": "nodePublishSecretRef",
}
"""The field of a volume's source that references a Secret."""


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
