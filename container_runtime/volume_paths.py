"""Where a kubelet has the volumes of a pod on its node. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree

PODS: Final = "/var/lib/kubelet/pods"
_NOTHING: Final[Mapping[str, ReadOnlyTree]] = {}
_PLUGINS: Final[Mapping[str, str]] = {
    "configMap": "configmap", "csi": "csi", "downwardAPI": "downward-api", "emptyDir": "empty-dir", "fc": "fc", "gitRepo": "git-repo",
    "iscsi": "iscsi", "local": "local-volume", "nfs": "nfs", "projected": "projected", "secret": "secret",
}  # fmt: skip
"""The names of the folders of a kubelet's volume plugins, without `kubernetes.io~`, by the field of the source."""


def volume_folders(pod: ReadOnlyTree, uid: str) -> Iterator[str]:
    """Yield the folders of a pod's volumes that are known from the pod alone; `uid` is that by which the kubelet knows the pod."""
    for volume in pod["spec"].get("volumes") or ():
        folder = _folder(volume, volume["name"])
        if folder:
            yield f"{PODS}/{uid}/volumes/{folder}"


def mount_source(
    pod: ReadOnlyTree,
    uid: str,
    container: ReadOnlyTree,
    number: int,
    bound: Mapping[str, ReadOnlyTree] = _NOTHING,
) -> str:
    """Return the path on the node of a container's mount of this number; `bound` has the PersistentVolumes by the names of the volumes."""
    mount = container["volumeMounts"][number]
    name = mount["name"]
    if mount.get("subPath") or mount.get("subPathExpr"):
        return f"{PODS}/{uid}/volume-subpaths/{name}/{container['name']}/{number}"
    volumes: Mapping[str, ReadOnlyTree] = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
    volume = volumes.get(name) or {}
    persistent = bound.get(name)
    source, folder_name = (
        (volume, name) if persistent is None else (persistent["spec"], persistent["metadata"]["name"])
    )
    path = (source.get("hostPath") or {}).get("path")
    folder = _folder(source, folder_name)
    return str(path) if path else f"{PODS}/{uid}/volumes/{folder or folder_name}"


def _folder(source: ReadOnlyTree, name: str) -> str:
    """Return the folder of a volume below that of all; "" for a source that has none there, or that is not known."""
    plugin = next((folder for field, folder in _PLUGINS.items() if source.get(field) is not None), "")
    end = "/mount" if plugin == "csi" else ""
    return f"kubernetes.io~{plugin}/{name}{end}" if plugin else ""
