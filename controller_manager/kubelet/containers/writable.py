"""The files of running containers as clients have changed them: kept for as long as the run, and for so many runs at a time."""

from collections import OrderedDict
from typing import Final, NamedTuple

from mockube.controller_manager.kubelet.shell.filesystem import Entry, FileSystem

MAX_CONTAINERS: Final = 200
MAX_BYTES: Final = 64 << 20
"""That all of them together take; who was looked at longest ago is forgotten first."""


class RunKey(NamedTuple):
    uid: str
    container: str
    restarts: int


class ContainerFiles:
    def __init__(self) -> None:
        self._kept: OrderedDict[RunKey, FileSystem] = OrderedDict()

    def of(self, key: RunKey, files: dict[str, Entry]) -> FileSystem:
        """The files of a run; those that are mounted are as they are now."""
        found = self._kept.pop(key, None)
        if found is None:
            found = FileSystem(files)
        else:
            found.mount({path: entry for path, entry in files.items() if entry.read_only})
        self._kept[key] = found
        while len(self._kept) > MAX_CONTAINERS or sum(one.size for one in self._kept.values()) > MAX_BYTES:
            if len(self._kept) == 1:
                break
            self._kept.popitem(last=False)
        return found

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        for key in [key for key in self._kept if key.uid == uid]:
            del self._kept[key]
