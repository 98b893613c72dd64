"""The logs of a cluster: a file for each process, read as they grow, and put in the order of time."""

import heapq
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from mockube.processes.control_plane import MANAGER, SERVER

OURS: Final = "mockube"
"""The output of the process that runs a detached cluster."""
COMPONENTS: Final = (SERVER, MANAGER, OURS)

_MOMENT: Final = re.compile(r'[IWEF](\d{4} \d\d:\d\d:\d\d\.\d+) |\{"ts":(\d+\.?\d*)')


class Tail:
    """One file, from where it was read to the last time."""

    def __init__(self, path: Path, label: str) -> None:
        self._path = path
        self._label = f"{label}: " if label else ""
        self._read = 0
        self._time = ""

    def lines(self) -> Iterator[tuple[str, str]]:
        """Whole lines, each with its moment: that of the line before, where it has none."""
        with self._path.open("rb") as file:
            if file.seek(0, 2) < self._read:
                self._read = 0  # the cluster was restarted
            file.seek(self._read)
            data, newline, _ = file.read().rpartition(b"\n")
        self._read += len(data) + len(newline)
        for line in data.decode(errors="replace").splitlines():
            if match := _MOMENT.match(line):
                self._time = match[1] or match[2]
            yield self._time, f"{self._label}{line}\n"


def merge_lines(tails: Sequence[Tail]) -> Sequence[str]:
    """What is new in all of them."""
    return [line for _, line in heapq.merge(*(tail.lines() for tail in tails), key=lambda entry: entry[0])]
