"""Injected randomness: uids and name suffixes come from a `Random`, so that a test can determine them.

Like `clock.py` for the time, this is the only module that may use the machine's randomness.
"""

import hashlib
import os
from typing import Final, Protocol

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""An alphabet without vowels and digits that look like them, so that names contain no words."""

SUFFIX_LENGTH = 5

_CHARACTERS: Final = SUFFIX_ALPHABET.encode().ljust(32) * 8
"""The character that the lowest five bits of a byte choose."""
_NO_CHOICE: Final = bytes(byte for byte in range(256) if byte & 0x1F >= len(SUFFIX_ALPHABET))


class Random(Protocol):
    def bytes(self, count: int) -> bytes:
        """Return so many bytes: unpredictable ones, or those that a test has determined."""


class SystemRandom:
    """The operating system's own randomness."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)


class SeededRandom:
    """The same bytes for the same seed, on every machine and Python."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = str(seed).encode()
        self._draws = 0

    def bytes(self, count: int) -> bytes:
        self._draws += 1
        return hashlib.shake_128(b"%s/%d" % (self._seed, self._draws)).digest(count)


def uid(random: Random) -> str:
    """A random (version 4) UUID, as objects carry in `metadata.uid`."""
    drawn = bytearray(random.bytes(16))
    drawn[6] = drawn[6] & 0x0F | 0x40
    drawn[8] = drawn[8] & 0x3F | 0x80
    text = drawn.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def suffix(random: Random, length: int = SUFFIX_LENGTH) -> str:
    """What is put behind `generateName`, and behind the names of pods."""
    characters = ""
    while len(characters) < length:
        # Five bits choose a character; a choice beyond the alphabet is thrown away to keep all equally likely.
        characters += random.bytes(2 * length).translate(_CHARACTERS, _NO_CHOICE).decode()
    return characters[:length]


def fraction(random: Random) -> float:
    """A number from 0 up to, but not, 1: what jitter is made of."""
    return int.from_bytes(random.bytes(4)) / 2**32
