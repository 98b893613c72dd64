"""Disks that fail or wait when a test says so."""

import errno
import os
import threading

from etcd.embedded.disk import Disk


class FaultyDisk(Disk):
    """Fails the calls that a test names, as a disk does: with an error number, a full one after a part was written."""

    def __init__(self):
        super().__init__()
        self.write_error = None
        self.sync_error = None
        self.cut_error = None
        self.room = None
        """Bytes that can still be written before the disk is full; None for no end."""

    def write(self, fd, data, offset):
        _fail(self.write_error)
        if self.room is None:
            return super().write(fd, data, offset)
        if self.room == 0:
            _fail(errno.ENOSPC)
        written = super().write(fd, data[: self.room], offset)
        self.room -= written
        return written

    def sync(self, fd):
        _fail(self.sync_error)
        super().sync(fd)

    def cut(self, fd, size):
        _fail(self.cut_error)
        super().cut(fd, size)


class HeldDisk(Disk):
    """Lets no sync return while it is held; counts those that did."""

    def __init__(self):
        super().__init__()
        self.syncs = 0
        self.waiting = False
        self._free = threading.Event()
        self._free.set()

    def hold(self):
        self._free.clear()

    def release(self):
        self._free.set()

    def sync(self, fd):
        self.waiting = not self._free.is_set()
        self._free.wait()
        self.waiting = False
        super().sync(fd)
        self.syncs += 1


def _fail(number):
    if number is not None:
        raise OSError(number, os.strerror(number))
