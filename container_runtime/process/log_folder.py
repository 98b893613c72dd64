"""The logs of all containers that run as processes, as files POD/CONTAINER.RESTARTS.log of one folder.

They may outlive the program, as those of a node outlive its kubelet.
"""

import shutil
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from .log_files import rotated_path

MAX_ENDED_RUNS: Final = 2
"""Runs of a container whose logs are retained: the latest and the previous one."""


class LogFolder:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def pods(self) -> AbstractSet[str]:
        """Return the uids of the pods that have logs."""
        return {folder.name for folder in self._path.iterdir()}

    def log(self, uid: str, container: str, restarts: int) -> Path:
        return self._path / uid / f"{container}.{restarts}.log"

    def make_log(self, uid: str, container: str, restarts: int) -> Path:
        """Return the path of a new log. Remove the oldest one, and one of a run that a killed program did not report."""
        path = self.log(uid, container, restarts)
        path.parent.mkdir(exist_ok=True)
        for old in (self.log(uid, container, restarts - MAX_ENDED_RUNS), path):
            for file in (old, rotated_path(old)):
                file.unlink(missing_ok=True)
        return path

    def remove_pod(self, uid: str) -> None:
        shutil.rmtree(self._path / uid, ignore_errors=True)
