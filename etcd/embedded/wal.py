"""The write-ahead log's open end: frames are appended to the last segment, and a new one is begun when it is full.

Knows of payloads and revisions, not of keys. Every call may block on the disk and is made from one thread at a time.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from mockube.etcd.embedded import frame
from mockube.etcd.embedded.disk import Disk, File
from mockube.etcd.embedded.segment import Opening, create_segment, segment_path
from mockube.etcd.errors import Interrupted, KVError
from mockube.etcd.kv import Revision

_logger = logging.getLogger(__name__)

SEGMENT_BYTES = 64 * 1024 * 1024
"""Past this size a new segment is begun; as in etcd."""


class Log:
    def __init__(
        self,
        disk: Disk,
        directory: Path,
        openings: Sequence[Opening],
        *,
        end: int,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Go on at the `end` of the last segment: a torn tail is cut off, and what was read is made durable."""
        self._disk = disk
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._openings = list(openings)
        self._end = end
        self._file = File(disk, segment_path(directory, openings[-1].number))
        self._cut_tail()

    def append(self, payload: bytes, first_revision: Revision) -> None:
        """Write one frame, with `first_revision` or later ones in it; if that fails, the log is as it was."""
        if self._end >= self._segment_bytes:
            self._begin_segment(first_revision)
        try:
            self._file.write(frame.encode(payload, self._end), self._end)
        except KVError:
            self._take_back()
            raise
        self._end += frame.size(payload)

    def sync(self) -> None:
        """Return when all that was appended is durable; must come between one `append` and the next."""
        self._file.sync()

    def first_needed(self, revision: Revision) -> int:
        """The number of the first segment that may hold something later than `revision`."""
        return max(opening.number for opening in self._openings if opening.first_revision <= revision + 1)

    def bytes_between(self, first: int, until: int) -> int:
        """The size of the segments from `first` to the one before `until`."""
        return sum(o.previous_size for o in self._openings if first < o.number <= until)

    def close(self) -> None:
        self._file.close()

    def _cut_tail(self) -> None:
        torn = self._file.size() - self._end
        if torn:
            _logger.warning("%s: cut a torn tail of %d bytes at byte %d", self._file.path, torn, self._end)
            self._file.cut(self._end)
        self._file.sync()

    def _begin_segment(self, first_revision: Revision) -> None:
        opening = Opening(
            number=self._openings[-1].number + 1, first_revision=first_revision, previous_size=self._end
        )
        file, end = create_segment(self._disk, self._directory, opening)
        self._file.close()
        self._file, self._end = file, end
        self._openings.append(opening)

    def _take_back(self) -> None:
        """Leave nothing of a frame that could not be written: its commits have changed nothing."""
        try:
            self._file.cut(self._end)
        except KVError as error:
            raise Interrupted(f"a failed write could not be undone: {error}") from error
