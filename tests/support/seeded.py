"""Seeded randomness: the same seed makes the same choices, on every machine."""

from random import Random  # noqa: TID251 -- made from a seed, here and nowhere else

__all__ = ["Random", "source"]


def source(*seed: object) -> Random:
    """A source of choices for one purpose; sources with different seeds are independent."""
    return Random(repr(seed))
