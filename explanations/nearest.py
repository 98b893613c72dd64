"""The name that somebody who wrote another one may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> str:
    """Return the one of some names that differs least from a name; "" if none is much like it."""
    return next(iter(get_close_matches(name, [*names], n=1)), "")
