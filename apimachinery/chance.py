"""Chance, injected: uids and name suffixes come from a `Chance`, so that a test can say what they will be.

The kin of `clock.py`: the only module that may ask the machine for randomness.
"""

import hashlib
import os
from typing import Final, Protocol

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels and nothing that looks like one, so that chance spells no words."""

SUFFIX_LENGTH = 5

_CHARACTERS: Final = SUFFIX_ALPHABET.encode().ljust(32) * 8
"""The character that the lowest five bits of a byte choose."""
_NO_CHOICE: Final = bytes(byte for byte in range(256) if byte & 0x1F >= len(SUFFIX_ALPHABET))


class Chance(Protocol):
    def bytes(self, count: int) -> bytes:
        """So many bytes that nobody can foretell, or that a test foretells."""


class SystemChance:
    """The operating system's own randomness."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)


class SeededChance:
    """The same bytes for the same seed, on every machine and Python."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = str(seed).encode()
        self._draws = 0

    def bytes(self, count: int) -> bytes:
        self._draws += 1
        return hashlib.shake_128(b"%s/%d" % (self._seed, self._draws)).digest(count)


def uid(chance: Chance) -> str:
    """A random (version 4) UUID, as objects carry in `metadata.uid`."""
    drawn = bytearray(chance.bytes(16))
    drawn[6] = drawn[6] & 0x0F | 0x40
    drawn[8] = drawn[8] & 0x3F | 0x80
    text = drawn.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def suffix(chance: Chance, length: int = SUFFIX_LENGTH) -> str:
    """What is put behind `generateName`, and behind the names of pods."""
    characters = ""
    while len(characters) < length:
        # Five bits choose a character; a choice beyond the alphabet is thrown away to keep all equally likely.
        characters += chance.bytes(2 * length).translate(_CHARACTERS, _NO_CHOICE).decode()
    return characters[:length]


def fraction(chance: Chance) -> float:
    """A number from 0 up to, but not, 1: what jitter is made of."""
    return int.from_bytes(chance.bytes(4)) / 2**32
