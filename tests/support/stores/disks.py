"""Disks that fail or block when a test says so."""

import errno
import os
import threading

from mockube.etcd.embedded.disk import Disk


class FaultyDisk(Disk):
    """Fails the calls that a test names with an error number; a full disk fails after a part was written."""

    def __init__(self, *, fsync=True):
        super().__init__(fsync=fsync)
        self.write_error = None
        self.sync_error = None
        self.cut_error = None
        self._room = None
        self._lock = threading.Lock()  # a log and a snapshot may be written at once

    def leave_room(self, room):
        """Bytes that can still be written before the disk is full; None for no end."""
        with self._lock:
            self._room = room

    def write(self, fd, data, offset):
        _fail(self.write_error)
        with self._lock:
            if self._room == 0:
                _fail(errno.ENOSPC)
            written = super().write(fd, data[: self._room], offset)
            if self._room is not None:
                self._room -= written
            return written

    def sync(self, fd):
        _fail(self.sync_error)
        super().sync(fd)

    def cut(self, fd, size):
        _fail(self.cut_error)
        super().cut(fd, size)


class HeldDisk(FaultyDisk):
    """Blocks calls while a test holds them; a call that is to fail does so when it is released."""

    def __init__(self):
        super().__init__()
        self.syncs = 0
        """How many calls have returned."""
        self.waiting = False
        self._free = threading.Event()
        self._free.set()
        self._blocked_calls = ("", "")
        self._let_pass = 0

    def hold(self, call="sync", *, by="", after=0):
        """Block calls of a kind from the threads with this name, except for the first few."""
        self._blocked_calls, self._let_pass = (call, by), after
        self._free.clear()

    def release(self):
        self._free.set()

    def write(self, fd, data, offset):
        self._wait("write")
        return super().write(fd, data, offset)

    def sync(self, fd):
        self._wait("sync")
        super().sync(fd)
        self.syncs += 1

    def _wait(self, call):
        blocked_call, by = self._blocked_calls
        if self._free.is_set() or call != blocked_call or not threading.current_thread().name.startswith(by):
            return
        if self._let_pass:
            self._let_pass -= 1
            return
        self.waiting = True
        self._free.wait()
        self.waiting = False


def _fail(number):
    if number is not None:
        raise OSError(number, os.strerror(number))
