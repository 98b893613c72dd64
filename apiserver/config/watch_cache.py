"""Sizes of watch caches, as kube-apiserver takes them. The only one that means something is 0: none."""

import re
from argparse import ArgumentTypeError
from typing import Final

_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


def cache_sizes(text: str) -> tuple[tuple[str, int], ...]:
    """`pods#100,leases.coordination.k8s.io#0`"""
    return tuple(_size(part) for part in text.split(",") if part)


def _size(text: str) -> tuple[str, int]:
    resource, *numbers = text.split("#")
    if len(numbers) != 1:
        raise ArgumentTypeError(f"invalid value of watch cache size: {text}")
    if _NUMBER.fullmatch(numbers[0]) is None:
        raise ArgumentTypeError(f"invalid size of watch cache size: {text}")
    size = int(numbers[0])
    if size < 0:
        raise ArgumentTypeError(f"watch cache size cannot be negative: {text}")
    return resource, size
