"""The devices of a container: the open descriptors of a process, the null device, zeros, and random bytes.

The last two have no end. A program that reads them by name gets a mebibyte, and then works for ever (`endless_reads.py`). The random bytes are the same in each run of a command, whose results
are computed in advance, and differ from one use to the next.
"""

from hashlib import shake_128
from typing import Final

from .proc_files import read_proc
from .process import Host

DEVICE_BYTES: Final = 1 << 20
RANDOM: Final = ("/dev/random", "/dev/urandom")
ZERO: Final = "/dev/zero"
_RANDOM_NANOSECONDS: Final = 2_000_000
"""What the random bytes of one use take."""
DEVICES: Final = (ZERO, *RANDOM)
NULL: Final = "/dev/null"
FULL: Final = "/dev/full"
"""Zeros to read, and no space to write."""
_STREAMS: Final = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2, "/dev/tty": 2}
_DESCRIPTOR_FOLDERS: Final = ("/dev/fd/", "/proc/self/fd/")
_MAX_DIGITS: Final = 9


def descriptor_number(path: str) -> int | None:
    """Return the number of the open descriptor that a path such as /dev/stdin or /dev/fd/3 names; None for another path."""
    for folder in _DESCRIPTOR_FOLDERS:
        name = path.removeprefix(folder)
        if name != path and name.isascii() and name.isdecimal():
            return int(name[:_MAX_DIGITS])
    return _STREAMS.get(path)


def is_special(path: str) -> bool:
    """Return whether a path is that of a device or of an open descriptor."""
    return path in (NULL, FULL, *DEVICES) or descriptor_number(path) is not None


def is_endless(path: str) -> bool:
    """Return whether a read of a path never reaches an end."""
    return path in (*DEVICES, FULL)


def read_device(host: Host, path: str) -> bytes | None:
    """Return what a device contains for one use; None if the path is not that of such a device."""
    if path in RANDOM:
        host.changes += 1
        host.work += _RANDOM_NANOSECONDS
        return shake_128(f"{host.name}/{host.changes}".encode()).digest(DEVICE_BYTES)
    return bytes(DEVICE_BYTES) if path in (*DEVICES, FULL) else read_proc(host, path)
