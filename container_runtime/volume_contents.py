"""What keeps the contents of volumes beyond the process of their run-time: a contract between a kubelet and a run-time."""

from typing import Final, NamedTuple, Protocol

Volume = tuple[str, ...]
"""A volume whose contents may be kept: the kind, and what names it.

(OF_POD, the uid of the pod, the name of the volume), (OF_NODE, the name of the node) for all its host paths, or
(OF_VOLUME, the uid of the PersistentVolume, its name).
"""
OF_POD: Final = "pod"
OF_NODE: Final = "node"
OF_VOLUME: Final = "volume"

MAX_BYTES: Final = 900 << 10
"""The maximum size of the encoded contents of one volume: what fits into a Secret."""


class EncodedContents(NamedTuple):
    data: bytes
    left_out: tuple[str, ...]
    """The paths of the files for which there is no space."""


class ContentsSource(Protocol):
    """Has the contents of volumes: a run-time."""

    async def encoded(self, volume: Volume) -> EncodedContents | None:
        """Return the present contents; None if they are not in memory."""

    def replace(self, volume: Volume, data: bytes | None) -> None:
        """Replace the contents of a node, and others that are in memory, by those that were kept; None if there are none any more."""

    def drop(self, volume: Volume) -> None:
        """Drop the contents of a volume that was deleted."""


class VolumeContents(Protocol):
    """Keeps the contents of volumes."""

    def connect(self, source: ContentsSource) -> None:
        """Name what has the contents."""

    def is_kept(self, volume: Volume) -> bool:
        """Return whether there are contents of a volume; those that are loaded later may be newer."""

    async def load(self, volume: Volume) -> bytes | None:
        """Return the contents of a volume; None if there are none."""

    def note_change(self, volume: Volume) -> None:
        """Note that contents have changed: they are kept soon."""

    def note_loss(self, volume: Volume, problem: str) -> None:
        """Report that kept contents cannot be used."""

    def remove_pod(self, uid: str) -> None:
        """Drop the contents of a deleted pod's own volumes."""


class _NothingKept:
    def connect(self, source: ContentsSource) -> None: ...

    def is_kept(self, _: Volume) -> bool:
        return False

    async def load(self, _: Volume) -> bytes | None:
        return None

    def note_change(self, volume: Volume) -> None: ...

    def note_loss(self, volume: Volume, problem: str) -> None: ...

    def remove_pod(self, uid: str) -> None: ...


NOTHING_KEPT: Final[VolumeContents] = _NothingKept()
"""For a run-time whose volumes end with its process."""
