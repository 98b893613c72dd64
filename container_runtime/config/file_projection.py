"""The files that a volume gets from API objects: their data, permissions and owners."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple
from zlib import crc32

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree

OWNER_ONLY: Final = 0o600


class FileProjection(NamedTuple):
    data: bytes
    mode: int
    user: int | None = None
    """The owner that the pod names for the file; None for root."""


Content = Mapping[str, FileProjection]


DATA_LINK: Final = "..data"
"""The link through which all names of a volume lead to its present files, so that a kubelet replaces all of them at once."""


def payload_folder(content: Content, time: datetime, owner: str) -> str:
    """Return the name of the folder that has the files of a volume, as a kubelet's: with the time, and digits that differ for all contents."""
    digest = crc32(owner.encode())
    for path, file in sorted(content.items()):
        digest = crc32(file.data, crc32(path.encode(), digest))
    return f"..{time:%Y_%m_%d_%H_%M_%S}.{digest}"


class Permissions(NamedTuple):
    """The mode and the owner of files from API objects."""

    mode: int = 0o644
    user: int | None = None

    def of(self, item: ReadOnlyTree) -> "Permissions":
        """Return those of an item, which may have its own."""
        return Permissions(item.get("mode", self.mode), item.get("user", self.user))

    def of_credential(self, source: ReadOnlyTree, pod: ReadOnlyTree) -> "Permissions":
        """Return those of a token or a certificate: only its owner reads it, who is the only user of the pod's containers.

        The group of the pod's volumes gets the right to read it as with other files.
        """
        mode, user = self.of(source)
        owner = common_user(pod) if user is None else user
        has_group = (pod["spec"].get("securityContext") or {}).get("fsGroup") is not None
        return Permissions(mode if owner is None and not has_group else OWNER_ONLY, owner)


def common_user(pod: ReadOnlyTree) -> int | None:
    """Return the user that all containers of a pod name to run as; None if they differ, or one names none."""
    context = pod["spec"].get("securityContext") or {}
    users = {
        (container.get("securityContext") or {}).get("runAsUser", context.get("runAsUser"))
        for container in every_container(pod["spec"])
    }
    return users.pop() if len(users) == 1 else None


def default_permissions(source: ReadOnlyTree, outer: Permissions | None = None) -> Permissions:
    """Return those of the files of a source, or of a volume with sources; `outer` are those of its volume."""
    mode, user = outer or Permissions()
    return Permissions(source.get("defaultMode", mode), source.get("defaultUser", user))
