"""Injected randomness: uids and name suffixes come from a `Random`, so that a test can determine them.

This is the only module that may use the machine's randomness, as `clock.py` is for the time.
"""

import hashlib
import os
from typing import Final, Protocol, Self

SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of suffixes, without vowels and digits that look like vowels, so that names contain no words."""

SUFFIX_LENGTH = 5

_CHARACTERS: Final = SUFFIX_ALPHABET.encode().ljust(32) * 8
"""The character for each byte, chosen by its lowest five bits."""
_REJECTED_BYTES: Final = bytes(byte for byte in range(256) if byte & 0x1F >= len(SUFFIX_ALPHABET))


class Random(Protocol):
    """A source of random bytes."""

    def bytes(self, count: int) -> bytes:
        """Return `count` bytes: unpredictable ones, or those that a test determines."""

    def stream(self, name: str) -> "Random":
        """Return the source of a part, whose bytes do not depend on when other parts draw theirs."""


class SystemRandom:
    """The operating system's randomness."""

    def bytes(self, count: int) -> bytes:
        return os.urandom(count)

    def stream(self, _name: str) -> Self:
        return self


class SeededRandom:
    """A reproducible source: a seed yields the same bytes on every machine and version of Python."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = str(seed).encode()
        self._draws = 0

    def bytes(self, count: int) -> bytes:
        self._draws += 1
        return hashlib.shake_128(b"%s/%d" % (self._seed, self._draws)).digest(count)

    def stream(self, name: str) -> "SeededRandom":
        """Return a source of its own, whose bytes do not depend on what others draw."""
        stream = SeededRandom()
        stream._seed = b"%s/%s" % (self._seed, name.encode())
        return stream


def uid(random: Random) -> str:
    """Return a random UUID (version 4) for `metadata.uid`."""
    drawn = bytearray(random.bytes(16))
    drawn[6] = drawn[6] & 0x0F | 0x40
    drawn[8] = drawn[8] & 0x3F | 0x80
    text = drawn.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def suffix(random: Random, length: int = SUFFIX_LENGTH) -> str:
    """Return a random suffix for names, such as those from `generateName`."""
    characters = ""
    while len(characters) < length:
        # Five bits choose a character. Values beyond the alphabet are dropped, so that all characters are equally likely.
        characters += random.bytes(2 * length).translate(_CHARACTERS, _REJECTED_BYTES).decode()
    return characters[:length]


def fraction(random: Random) -> float:
    """Return a number of at least 0 and less than 1, for jitter."""
    return int.from_bytes(random.bytes(4)) / 2**32
