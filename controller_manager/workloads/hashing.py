"""Hashes as controllers name things by: of a pod template, and the alphabet that hashes are spelled in.

A name made of a hash says what it was made of; a count of collisions makes another of the same.
"""

from typing import Final

from apimachinery.chance import SUFFIX_ALPHABET
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.gotypes import POD_TEMPLATE
from controller_manager.workloads.spew import spew

_FNV_OFFSET: Final = 2166136261
_FNV_PRIME: Final = 16777619
_COUNT_BYTES: Final = 8


def template_hash(template: Tree, collision_count: int | None) -> str:
    """The value of `pod-template-hash`. That nothing collided yet is not the same as a count of none."""
    text = spew(template, POD_TEMPLATE).encode()
    if collision_count is not None:
        text += collision_count.to_bytes(_COUNT_BYTES, "little")
    return safe_encode(str(_fnv32a(text)))


def _fnv32a(text: bytes) -> int:
    value = _FNV_OFFSET
    for byte in text:
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


def safe_encode(text: str) -> str:
    """Characters of the alphabet in which no word comes about."""
    return "".join(SUFFIX_ALPHABET[ord(character) % len(SUFFIX_ALPHABET)] for character in text)
