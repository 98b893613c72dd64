"""The files that etcdctl writes on control-plane nodes: snapshots, and the data folders that are restored from them. Pure.

A file names a revision of the cluster's store. The objects stay in the history of the API server.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

DATABASE: Final = "member/snap/db"
"""The file in a data folder with the objects."""
DEFAULT_FOLDER: Final = "/var/lib/etcd"
_MAGIC: Final = b"mockube-etcd-snapshot "
_DATA_FLAG: Final = "--data-dir="


class EtcdSnapshot(Struct, frozen=True, kw_only=True):
    revision: int
    keys: int
    size: int
    """The bytes of the store."""
    version: str
    restored: str = ""
    """What tells one restored data folder from another; "" for a snapshot, and for a folder that etcd has read."""


def encode(snapshot: EtcdSnapshot) -> bytes:
    return _MAGIC + msgspec.json.encode(snapshot) + b"\n"


def decode(data: bytes) -> EtcdSnapshot | None:
    """Return the snapshot in a file; None if it is another file, or a broken one."""
    if not data.startswith(_MAGIC):
        return None
    try:
        return msgspec.json.decode(data[len(_MAGIC) :], type=EtcdSnapshot)
    except msgspec.DecodeError:
        return None


def data_folder(pod: ReadOnlyTree) -> str:
    """Return the folder of the node that a pod of etcd has as its data; "" if it has none there."""
    for container in pod["spec"].get("containers") or ():
        for path in _data_paths(container):
            mounts = {
                each["mountPath"].rstrip("/"): each["name"] for each in container.get("volumeMounts") or ()
            }
            volume = mounts.get(path)
            for each in pod["spec"].get("volumes") or ():
                if each["name"] == volume:
                    return str((each.get("hostPath") or {}).get("path") or "").rstrip("/")
    return ""


def _data_paths(container: ReadOnlyTree) -> Iterator[str]:
    for word in (*(container.get("command") or ()), *(container.get("args") or ())):
        if str(word).startswith(_DATA_FLAG):
            yield str(word).removeprefix(_DATA_FLAG).rstrip("/")
