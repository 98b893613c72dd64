"""The volumes of a pod that have to be attached to its node before they are mounted. Pure."""

from collections.abc import Iterator

from mockube.apimachinery.pods import claim_name
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.component_helpers.volumes import attachment_name
from mockube.kubelet.start_checks import ReferencedObjects, mounted_names


def unattached_volumes(pod: ReadOnlyTree, objects: ReferencedObjects) -> list[str]:
    """Return the names of the mounted volumes that are not attached to the pod's node yet."""
    if not objects.attaches_volumes:
        return []
    return [name for name, claim in _claims_of(pod) if not _is_attached(pod, claim, objects)]


def _claims_of(pod: ReadOnlyTree) -> Iterator[tuple[str, str]]:
    """Yield the mounted volumes with their claims' names."""
    mounted = None
    for volume in pod["spec"].get("volumes") or ():
        if "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            continue
        mounted = mounted_names(pod) if mounted is None else mounted
        if volume["name"] in mounted:
            yield volume["name"], claim_name(pod, volume)


def _is_attached(pod: ReadOnlyTree, claim_name: str, objects: ReferencedObjects) -> bool:
    """Return whether a claim is bound, and its volume is attached to the pod's node, or need not be attached."""
    claim = objects.cached_object(kinds.PERSISTENT_VOLUME_CLAIMS, claim_name)
    volume_name = "" if claim is None else claim["spec"].get("volumeName") or ""
    volume = objects.cached_object(kinds.PERSISTENT_VOLUMES, volume_name) if volume_name else None
    if volume is None:
        return False
    source = volume["spec"].get("csi")
    if source is None:
        return True
    driver = objects.cached_object(kinds.CSI_DRIVERS, source["driver"])
    if driver is not None and driver["spec"].get("attachRequired") is False:
        return True
    attachment = objects.cached_object(
        kinds.VOLUME_ATTACHMENTS, attachment_name(volume, pod["spec"]["nodeName"])
    )
    return attachment is not None and bool((attachment.get("status") or {}).get("attached"))
