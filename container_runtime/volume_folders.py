"""Where the contents of volumes are that processes have mounted: in folders of this machine, which simulated containers use, too.

A volume is in memory until a container that is a process mounts it. Then its contents move into a folder, for all containers, and stay there
until the volume is deleted.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from mockube.apimachinery.tree import ReadOnlyTree

from .config.environment import References
from .volume_contents import OF_NODE, OF_POD, Volume


class VolumeFolders(Protocol):
    """Has the contents of volumes: a run-time of simulated containers."""

    async def mount(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, references: References, base: Path
    ) -> Mapping[str, Path]:
        """Return the folder or file of each volume that the container may write, by its mount path; they are below `base`.

        Raise `StartError` for what cannot be mounted.
        """

    async def note_changes(self, pod: ReadOnlyTree) -> None:
        """Keep what processes have changed in the volumes of a pod."""

    async def release(self) -> None:
        """Keep the present contents of all folders, which are removed after that."""


def folder_path(base: Path, volume: Volume) -> Path:
    """Return the folder of a volume; those of a pod are below the folder of the pod."""
    kind, name = volume[0], quote(volume[1], safe="")
    if kind == OF_POD:
        return base / name / "volumes" / volume[2]
    return base / ("nodes" if kind == OF_NODE else "claims") / name
