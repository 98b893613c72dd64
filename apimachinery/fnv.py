"""The FNV-1 and FNV-1a hashes of Go's hash/fnv, with 32, 64 or 128 bits."""

from typing import Final

_OFFSETS_AND_PRIMES: Final = {
    32: (0x811C9DC5, 0x01000193),
    64: (0xCBF29CE484222325, 0x100000001B3),
    128: (0x6C62272E07BB014262B821756295C58D, (1 << 88) + 0x13B),
}


def fnv1(text: bytes, bits: int) -> int:
    value, prime = _OFFSETS_AND_PRIMES[bits]
    mask = (1 << bits) - 1
    for byte in text:
        value = (value * prime & mask) ^ byte
    return value


def fnv1a(text: bytes, bits: int) -> int:
    value, prime = _OFFSETS_AND_PRIMES[bits]
    mask = (1 << bits) - 1
    for byte in text:
        value = ((value ^ byte) * prime) & mask
    return value
