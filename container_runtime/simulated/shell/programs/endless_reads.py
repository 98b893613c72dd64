"""Programs that read devices without an end, such as /dev/zero: they work for ever, or keep all of it until the memory is full.

One that copies its input goes on until nobody reads its output.
"""

from math import inf
from typing import Final

from mockube.container_runtime.simulated.shell.devices import NULL, is_endless
from mockube.container_runtime.simulated.shell.process import Process, Sleep, Steps, fill_memory
from mockube.container_runtime.simulated.shell.streams import NullStream

_PRINTS_AT_END: Final = frozenset(
    ["md5sum", "sha1sum", "sha256sum", "sha512sum", "sha3sum", "cksum", "sum", "crc32", "wc", "cmp", "grep"]
)
"""The programs that keep nothing of their input, and print nothing before its end."""
_KEEPS_INPUT: Final = frozenset(["tail", "sort", "tac", "shuf", "sponge", "rev"])
"""The programs that keep all lines, or one that never ends."""


def before_read(process: Process, path: str) -> Steps:
    """Stay in the read of a device that the program reads to its end before it writes."""
    name = process.name.rpartition("/")[2]
    if not is_endless(path):
        return
    if name in _KEEPS_INPUT:
        yield from fill_memory(process, inf)
    if name in _PRINTS_AT_END:
        yield Sleep(inf, cores=1.0)


def copies_for_ever(process: Process, source: str, target: str = "") -> bool:
    """Return whether a copy has no end: that of a device into the null device. An empty target is the standard output."""
    if not is_endless(process.path(source)):
        return False
    if target:
        return process.path(target) == NULL
    return isinstance(process.descriptors.get(1), NullStream)
