"""The logs of a cluster: one file for each process, read as they grow, and merged by time."""

import heapq
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from mockube.processes.control_plane import MANAGER, SERVER

SUPERVISOR_LOG: Final = "mockube"
"""The name of the log of the process that runs a detached cluster."""
COMPONENTS: Final = (SERVER, MANAGER, SUPERVISOR_LOG)

_TIMESTAMP: Final = re.compile(r'[IWEF](\d{4} \d\d:\d\d:\d\d\.\d+) |\{"ts":(\d+\.?\d*)')


class Tail:
    """A reader of one log file, which continues at the end of the last read."""

    def __init__(self, path: Path, label: str) -> None:
        self._path = path
        self._label = f"{label}: " if label else ""
        self._offset = 0
        self._timestamp = ""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield the new complete lines, each with its timestamp, or that of the line before if it has none."""
        with self._path.open("rb") as file:
            if file.seek(0, 2) < self._offset:
                self._offset = 0  # the cluster was restarted
            file.seek(self._offset)
            data, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(data) + len(newline)
        for line in data.decode(errors="replace").split("\n") if data else ():
            if match := _TIMESTAMP.match(line):
                self._timestamp = match[1] or match[2]
            yield self._timestamp, f"{self._label}{line}\n"


def merge_lines(tails: Sequence[Tail]) -> Sequence[str]:
    """Return the new lines of all files, in the order of time."""
    return [line for _, line in heapq.merge(*(tail.lines() for tail in tails), key=lambda entry: entry[0])]
