"""What a container's process can never gain, as runc sets it: capabilities beyond its bounding set, and those of programs of another user.

The launcher imports this module as a script, so it imports nothing of mockube.
"""

import ctypes
from collections.abc import Callable
from typing import Any, Final

_READ_BOUNDING, _DROP_BOUNDING, _NO_NEW_PRIVILEGES, _AMBIENT = 23, 24, 38, 47
"""Options of prctl(2)."""
_CLEAR_AMBIENT: Final = 4
_VERSION: Final = 0x20080522
_WORD: Final = 32

Check = Callable[[int, str], None]


def limit_bounding(libc: Any, check: Check, capabilities: int) -> None:
    """Drop all other capabilities from the bounding set, while this process may: what it executes never has them."""
    number = 0
    while (present := libc.prctl(_READ_BOUNDING, number, 0, 0, 0)) >= 0:
        if present and not capabilities >> number & 1:
            check(libc.prctl(_DROP_BOUNDING, number, 0, 0, 0), f"dropping capability {number}")
        number += 1


def limit_own(libc: Any, check: Check, capabilities: int) -> None:
    """Give up all other capabilities, and all that what this process executes would inherit."""
    check(libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0), "clearing ambient capabilities")
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    words = (ctypes.c_uint32 * 6)()  # the effective, permitted and inheritable ones, lower halves first
    check(libc.capget(header, words), "capget")
    for half in (0, 1):
        permitted = words[3 * half + 1] & (capabilities >> _WORD * half & 0xFFFFFFFF)
        words[3 * half : 3 * half + 3] = [permitted, permitted, 0]
    check(libc.capset(header, words), "capset")


def gain_nothing(libc: Any, check: Check) -> None:
    """Let programs of another user, and files with capabilities, run as this process is."""
    check(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
