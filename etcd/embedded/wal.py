"""Append frames to the last segment of the write-ahead log; begin a new segment when it is full.

The module handles payloads and revisions, not keys. Every call may block on the disk; only one thread at a time may
call it.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from mockube.etcd.errors import Interrupted, KVError
from mockube.etcd.kv import Revision

from . import frame
from .disk import Disk, File, check_writable
from .segment import SegmentHeader, create_segment, segment_path

_logger = logging.getLogger(__name__)

SEGMENT_BYTES = 64 * 1024 * 1024
"""The size from which on a segment is full; as in etcd."""


class Log:
    def __init__(
        self,
        disk: Disk,
        directory: Path,
        headers: Sequence[SegmentHeader],
        *,
        end: int,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Continue at `end` in the last segment: remove a torn tail, and sync what was read."""
        self._disk = disk
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._headers = list(headers)
        self._end = end
        self._file = File(disk, segment_path(directory, headers[-1].number))
        self._cut_tail()

    def append(self, payload: bytes, first_revision: Revision) -> None:
        """Write one frame, which contains `first_revision` and possibly later ones; after an error the log is unchanged."""
        if self._end >= self._segment_bytes:
            self._begin_segment(first_revision)
        try:
            self._file.write(frame.encode(payload, self._end), self._end)
        except KVError:
            self._cut_partial_frame()
            raise
        self._end += frame.size(payload)

    def sync(self) -> None:
        """Return when everything appended is durable. Call it between two calls of `append`."""
        self._file.sync()

    def check_writable(self) -> None:
        """Raise an error of the store if nothing can be written."""
        check_writable(self._disk, self._directory)

    def first_needed(self, revision: Revision) -> int:
        """Return the number of the first segment that may contain anything later than `revision`."""
        return max(header.number for header in self._headers if header.first_revision <= revision + 1)

    def bytes_between(self, first: int, until: int) -> int:
        """Return the size of the segments from `first` to the one before `until`."""
        return sum(o.previous_size for o in self._headers if first < o.number <= until)

    def close(self) -> None:
        self._file.close()

    def _cut_tail(self) -> None:
        torn = self._file.size() - self._end
        if torn:
            _logger.warning(
                "%s: truncated an incomplete record of %d bytes at byte %d", self._file.path, torn, self._end
            )
            self._file.cut(self._end)
        self._file.sync()

    def _begin_segment(self, first_revision: Revision) -> None:
        header = SegmentHeader(
            number=self._headers[-1].number + 1, first_revision=first_revision, previous_size=self._end
        )
        file, end = create_segment(self._disk, self._directory, header)
        self._file.close()
        self._file, self._end = file, end
        self._headers.append(header)

    def _cut_partial_frame(self) -> None:
        """Remove a partly written frame; raise Interrupted if that fails."""
        try:
            self._file.cut(self._end)
        except KVError as error:
            raise Interrupted(f"a failed write could not be undone: {error}") from error
