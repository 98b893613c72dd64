"""The volumes of a pod that its node lacks: host paths of another type, local volumes and CSI drivers. Pure."""

from collections.abc import Collection, Iterator
from posixpath import dirname, normpath
from typing import Final

import orjson

from mockube.apimachinery.pods import claim_name
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.component_helpers.volumes import SIMULATED_PROVISIONERS
from mockube.container_runtime.node_paths import DIRECTORY, FILE
from mockube.kubelet.start_checks import ReferencedObjects, mounted_names

from .host_paths import CREATED_TYPES, PathType

_NOUNS: Final = {
    DIRECTORY: "directory",
    FILE: "file",
    "Socket": "socket file",
    "CharDevice": "character device",
    "BlockDevice": "block device",
}


def lacking_volumes(
    pod: ReadOnlyTree, objects: ReferencedObjects, path_type: PathType, unattached: Collection[str] = ()
) -> dict[str, str]:
    """Return the event's message of each mounted volume that the node lacks, by the volume's name.

    Volumes that are not attached yet are mounted later.
    """
    failures: dict[str, str] = {}
    mounted: set[str] | None = None
    for volume in pod["spec"].get("volumes") or ():
        if _IN_NODE.isdisjoint(volume) or volume["name"] in unattached:
            continue
        mounted = mounted_names(pod) if mounted is None else mounted
        if volume["name"] in mounted:
            message = next(_failures(pod, volume, objects, path_type), "")
            failures |= {volume["name"]: message} if message else {}
    return failures


_IN_NODE: Final = frozenset({"hostPath", "csi", "persistentVolumeClaim", "ephemeral"})


def _failures(
    pod: ReadOnlyTree, volume: ReadOnlyTree, objects: ReferencedObjects, path_type: PathType
) -> Iterator[str]:
    if "hostPath" in volume:
        yield from _host_path_failures(volume["name"], volume["hostPath"], path_type)
    elif "csi" in volume:
        yield from _inline_csi_failures(pod, volume, objects)
    elif objects.attaches_volumes:
        yield from _persistent_volume_failures(pod, volume, objects, path_type)


def _host_path_failures(name: str, source: ReadOnlyTree, path_type: PathType) -> Iterator[str]:
    """Compare the type of a host path with that on the node; a volume without a type is not checked."""
    volume_type, path = source.get("type") or "", source["path"]
    if not volume_type:
        return
    file_type = path_type(path)
    created = CREATED_TYPES.get(volume_type)
    if file_type == (created or volume_type):
        return
    if created is None or file_type:
        reason = f"hostPath type check failed: {path} is not a {_NOUNS[created or volume_type]}"
    elif created is FILE and path_type(dirname(normpath(path))) != DIRECTORY:
        reason = f"open {path}: no such file or directory"
    else:
        return
    yield f'MountVolume.SetUp failed for volume "{name}" : {reason}'


def _inline_csi_failures(
    pod: ReadOnlyTree, volume: ReadOnlyTree, objects: ReferencedObjects
) -> Iterator[str]:
    name = volume["csi"]["driver"]
    driver = objects.cached_object(kinds.CSI_DRIVERS, name)
    prefix = f'MountVolume.SetUp failed for volume "{volume["name"]}" : kubernetes.io/csi: mounter.'
    if driver is None and not _is_registered(name, pod, objects):
        yield f"{prefix}SetUpAt failed to get CSI client: {_not_registered(name)}"
        return
    modes = None if driver is None else driver["spec"].get("volumeLifecycleModes") or ["Persistent"]
    if modes is None:
        supported = "no CSIDriver object"
    elif "Ephemeral" not in modes:
        supported = f"only supports [{' '.join(orjson.dumps(mode).decode() for mode in modes)}]"
    else:
        return
    yield (
        f"{prefix}SetupAt failed to check volume lifecycle mode: "
        f'volume mode "Ephemeral" not supported by driver {name} ({supported})'
    )


def _persistent_volume_failures(
    pod: ReadOnlyTree, volume: ReadOnlyTree, objects: ReferencedObjects, path_type: PathType
) -> Iterator[str]:
    claim = objects.cached_object(kinds.PERSISTENT_VOLUME_CLAIMS, claim_name(pod, volume))
    name = "" if claim is None else claim["spec"].get("volumeName") or ""
    persistent = objects.cached_object(kinds.PERSISTENT_VOLUMES, name) if name else None
    spec = {} if persistent is None else persistent["spec"]
    if "hostPath" in spec:
        yield from _host_path_failures(name, spec["hostPath"], path_type)
    elif "local" in spec:
        path = spec["local"]["path"]
        file_type = path_type(path)
        if file_type not in (DIRECTORY, "BlockDevice"):
            reason = (
                "only directory and block device are supported"
                if file_type
                else f'path "{path}" does not exist'
            )
            yield f'MountVolume.NewMounter initialization failed for volume "{name}" : {reason}'
    elif "csi" in spec:
        driver = spec["csi"]["driver"]
        if objects.cached_object(kinds.CSI_DRIVERS, driver) is None and not _is_registered(
            driver, pod, objects
        ):
            yield (
                f'MountVolume.MountDevice failed for volume "{name}" : kubernetes.io/csi: '
                f"attacher.MountDevice failed to create newCsiDriverClient: {_not_registered(driver)}"
            )


def _is_registered(driver: str, pod: ReadOnlyTree, objects: ReferencedObjects) -> bool:
    """Return whether the node has a CSI driver. Those that mockube simulates are on every node."""
    if driver in SIMULATED_PROVISIONERS:
        return True
    node = objects.cached_object(kinds.CSI_NODES, pod["spec"]["nodeName"])
    return node is not None and any(entry["name"] == driver for entry in node["spec"].get("drivers") or ())


def _not_registered(driver: str) -> str:
    return f"driver name {driver} not found in the list of registered CSI drivers"
