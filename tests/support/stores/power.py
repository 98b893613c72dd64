"""A disk that simulates power loss: at any fsync, unsynced data may be present in part, or not at all."""

import os
import threading
from contextlib import suppress
from pathlib import Path

from mockube.etcd.embedded.disk import Disk

SECTOR = 512


class PowerLossState:
    """The files that a power loss would leave, and the writes that had been acknowledged by then."""

    def __init__(self, files, acknowledged):
        self.files = files
        self.acknowledged = acknowledged

    def restore(self, directory):
        for name, content in self.files.items():
            (directory / name).write_bytes(content)


class LossyDisk(Disk):
    """Writes and never syncs. The test fills the dict `acknowledged`; `losses` are the states to try afterwards."""

    def __init__(self, directory, random, acknowledged):
        super().__init__()
        self.losses = []
        self._directory = directory
        self._random = random
        self._acknowledged = acknowledged
        self._synced = {}  # by inode: synced content
        self._names = set()  # that are synced
        self._lock = threading.Lock()

    def sync(self, fd):
        with self._lock:
            inode, content = os.fstat(fd).st_ino, Path(f"/dev/fd/{fd}").read_bytes()
            self._record_loss({inode: _mix(self._random, self._synced.get(inode, b""), content)})
            self._synced[inode] = content

    def sync_directory(self, directory):
        with self._lock:
            self._record_loss({})
            self._names = {path.name for path in directory.iterdir()}

    def _record_loss(self, mixed):
        before, files = dict(self._acknowledged), {}
        for path in self._directory.iterdir():
            if path.name in self._names or self._random.random() < 0.5:
                with suppress(FileNotFoundError):  # it is being removed or renamed
                    files[path.name] = mixed.get(path.stat().st_ino, path.read_bytes())
        # The store continues meanwhile: the files must have what was acknowledged before they were read and not undone
        # until after.
        after = dict(self._acknowledged)
        acknowledged = {key: revision for key, revision in before.items() if after.get(key) == revision}
        self.losses.append(PowerLossState(files, acknowledged))


def _mix(random, old, new):
    """Return for each sector the old or the new data, and any possible length."""
    length = random.choice([len(old), len(new), random.randint(*sorted((len(old), len(new))))])
    sectors = range(0, max(len(old), len(new)), SECTOR)
    chosen = (_sector(random.choice([old, new]), offset) for offset in sectors)
    return b"".join(chosen)[:length]


def _sector(content, offset):
    return content[offset : offset + SECTOR].ljust(SECTOR, b"\0")
