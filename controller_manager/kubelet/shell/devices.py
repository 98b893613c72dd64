"""The devices of a container from which programs read: zeros, and random bytes.

They end after a mebibyte, because programs read their whole input. The random bytes are the same in each run of a command, whose results
are computed in advance, and differ from one use to the next.
"""

from hashlib import shake_128
from typing import Final

from mockube.controller_manager.kubelet.shell.process import Host

DEVICE_BYTES: Final = 1 << 20
RANDOM: Final = ("/dev/random", "/dev/urandom")
DEVICES: Final = ("/dev/zero", *RANDOM)


def read_device(host: Host, path: str) -> bytes | None:
    """Return what a device contains for one use; None if the path is not that of such a device."""
    if path in RANDOM:
        host.changes += 1
        return shake_128(f"{host.name}/{host.changes}".encode()).digest(DEVICE_BYTES)
    return bytes(DEVICE_BYTES) if path in DEVICES else None
