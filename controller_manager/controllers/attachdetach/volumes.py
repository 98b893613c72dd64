"""The volumes that the pods of a node need, and their VolumeAttachments."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches
from mockube.client.component_helpers.indexes import claims_of_pod
from mockube.client.component_helpers.volumes import attachment_name, is_bound_to
from mockube.client.podview import PodView
from mockube.client.resources import Key

BY_NODE_WITH_CLAIMS: Final = "node-with-claims"
BY_ATTACHED_VOLUME: Final = "attached-volume"
_OWN_NAME: Final = re.compile("csi-[0-9a-f]{64}")
_SHARED: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})


class NeededVolume(Struct, frozen=True):
    """A volume that pods of one node use."""

    volume: ReadOnlyTree
    pods: list[PodView] = field(default_factory=list)

    @property
    def name(self) -> str:
        return meta.name(self.volume)

    @property
    def is_exclusive(self) -> bool:
        modes = self.volume["spec"].get("accessModes") or ()
        return bool(modes) and not _SHARED & {*modes}


def unique_name(volume: ReadOnlyTree) -> str:
    """Return the name of a volume in the status of nodes."""
    source = volume["spec"]["csi"]
    return f"kubernetes.io/csi/{source['driver']}^{source['volumeHandle']}"


def needed_volumes(caches: Caches, node: str) -> Mapping[str, NeededVolume]:
    """Return the volumes that pods of a node use, by the names of their attachments."""
    volumes_by_name: dict[str, NeededVolume] = {}
    for pod in caches.of(kinds.PODS).by_index(BY_NODE_WITH_CLAIMS, node):
        if pod.is_terminal:
            continue
        for volume in _volumes_of(caches, pod):
            name = attachment_name(volume, node)
            volumes_by_name.setdefault(name, NeededVolume(volume)).pods.append(pod)
    return volumes_by_name


def _volumes_of(caches: Caches, pod: PodView) -> Iterator[ReadOnlyTree]:
    for text in claims_of_pod(pod):
        claim = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).get(*Key.parse(text))
        name = None if claim is None else claim["spec"].get("volumeName")
        volume = None if not name else caches.of(kinds.PERSISTENT_VOLUMES).get("", name)
        if claim is None or volume is None or not is_bound_to(volume, claim):
            continue
        if "csi" in volume["spec"] and _requires_attachment(caches, volume["spec"]["csi"]["driver"]):
            yield volume


def _requires_attachment(caches: Caches, driver: str) -> bool:
    """Return whether a driver's volumes have to be attached, which is the default."""
    csi_driver = caches.of(kinds.CSI_DRIVERS).get("", driver)
    return csi_driver is None or csi_driver["spec"].get("attachRequired") is not False


def own_volume(caches: Caches, attachment: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the volume of an attachment that this controller created: others have other names."""
    name = next(volume_of_attachment(attachment))
    volume = caches.of(kinds.PERSISTENT_VOLUMES).get("", name) if name else None
    if volume is None or "csi" not in volume["spec"]:
        return None
    is_own_name = attachment_name(volume, attachment["spec"]["nodeName"]) == meta.name(attachment)
    return volume if is_own_name else None


def is_own(caches: Caches, attachment: ReadOnlyTree) -> bool:
    """Return whether this controller created an attachment, by its name. Its volume may be deleted."""
    name = next(volume_of_attachment(attachment))
    is_orphan = bool(name) and caches.of(kinds.PERSISTENT_VOLUMES).get("", name) is None
    if is_orphan:
        return _OWN_NAME.fullmatch(meta.name(attachment)) is not None
    return own_volume(caches, attachment) is not None


def attachment(needed: NeededVolume, node: str) -> dict[str, Any]:
    return {
        "kind": kinds.VOLUME_ATTACHMENTS.kind,
        "apiVersion": kinds.VOLUME_ATTACHMENTS.api_version,
        "metadata": {"name": attachment_name(needed.volume, node)},
        "spec": {
            "attacher": needed.volume["spec"]["csi"]["driver"],
            "nodeName": node,
            "source": {"persistentVolumeName": needed.name},
        },
    }


def is_attached(attachment: ReadOnlyTree) -> bool:
    return bool((attachment.get("status") or {}).get("attached"))


# --- indexes


def nodes_of_claim_users(pod: PodView) -> Iterator[str]:
    if pod.node and any(True for _ in claims_of_pod(pod)):
        yield pod.node


def volume_of_attachment(attachment: ReadOnlyTree) -> Iterator[str]:
    yield (attachment["spec"].get("source") or {}).get("persistentVolumeName") or ""
