"""The disk of a node, which the file systems of its containers share: those of containers, of emptyDirs and of hostPaths."""

from collections.abc import Callable
from typing import Final

_SCARCE: Final = 0.8
"""The part of a disk that is in use when it becomes scarce."""
_STEP: Final = 0.01
"""The part of a disk by which the use grows until it is reported again."""


class NodeDisk:
    def __init__(
        self,
        size: int,
        count: Callable[[], int] | None = None,
        on_scarcity: Callable[[], None] = lambda: None,
    ) -> None:
        """`count` returns the bytes that are in use; without it, only what is written counts, and nothing is removed.

        `on_scarcity` is called when the disk becomes scarce, and when even more of it is in use.
        """
        self.size = size
        self.reserved = 0
        """No less than what is in use: files that are removed are subtracted when the disk is counted the next time."""
        self._count = count
        self._on_scarcity = on_scarcity
        self._report_at = _SCARCE * size

    def reserve(self, more: int) -> bool:
        """Return whether there is space for more bytes, which count as used from now on."""
        if self.reserved + more > min(self.size, self._report_at):
            self._count_files()
        if self.reserved + more > self.size:
            return False
        self.reserved += more
        if self.reserved > self._report_at:
            self._report_at = self.reserved + _STEP * self.size
            self._on_scarcity()
        return True

    def free(self) -> int:
        self._count_files()
        return max(self.size - self.reserved, 0)

    def _count_files(self) -> None:
        if self._count is not None:
            self.reserved = self._count()
        next_report = min(self._report_at, self.reserved + _STEP * self.size)
        self._report_at = max(_SCARCE * self.size, next_report)
