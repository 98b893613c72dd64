"""The files that a volume gets from API objects: their data, permissions and owners."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree

OWNER_ONLY: Final = 0o600


class FileProjection(NamedTuple):
    data: bytes
    mode: int
    user: int | None = None
    """The owner that the pod names for the file; None for root."""


Content = Mapping[str, FileProjection]


class Permissions(NamedTuple):
    """The mode and the owner of files from API objects."""

    mode: int = 0o644
    user: int | None = None

    def of(self, item: ReadOnlyTree) -> "Permissions":
        """Return those of an item, which may have its own."""
        return Permissions(item.get("mode", self.mode), item.get("user", self.user))

    def of_credential(self, source: ReadOnlyTree) -> "Permissions":
        """Return those of a token or a certificate: if it has an owner, only that one reads it."""
        mode, user = self.of(source)
        return Permissions(mode if user is None else OWNER_ONLY, user)


def default_permissions(source: ReadOnlyTree, outer: Permissions | None = None) -> Permissions:
    """Return those of the files of a source, or of a volume with sources; `outer` are those of its volume."""
    mode, user = outer or Permissions()
    return Permissions(source.get("defaultMode", mode), source.get("defaultUser", user))
