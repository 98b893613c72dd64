"""Suggestions for mistyped names: of commands, flags, kinds, fields and objects. Pure."""

from collections.abc import Iterable
from typing import Final

MIN_SIMILARITY: Final = 0.65
"""The similarity of a suggestion, from 0 to 1."""
MAX_COMPARED: Final = 5_000
"""The number of names that are compared."""
MAX_LISTED: Final = 8
"""The number of names in a message."""
MAX_NAME: Final = 253
"""The length of a name that is compared; no valid name is longer."""


def nearest(name: str, candidates: Iterable[str], *, min_similarity: float | None = None) -> str:
    """Return the candidate that is most similar to a name; "" if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415 - it is needed for errors only

    if len(name) > MAX_NAME:
        return ""
    by_lower_case = {candidate.lower(): candidate for candidate in [*candidates][:MAX_COMPARED]}
    matches = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=min_similarity or MIN_SIMILARITY)
    return by_lower_case[matches[0]] if matches else ""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return the end of a message that suggests the nearest candidate; "" if none is similar."""
    candidate = nearest(name, candidates)
    return f': did you mean "{candidate}"?' if candidate else ""


def enumerate_names(names: Iterable[str]) -> str:
    """Return the first names in alphabetical order, and how many more there are."""
    ordered = sorted(names)
    omitted = f" and {len(ordered) - MAX_LISTED} more" if len(ordered) > MAX_LISTED else ""
    return ", ".join(ordered[:MAX_LISTED]) + omitted
