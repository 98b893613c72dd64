"""The variables in the texts of a configuration: $name, ${name}, and $1 for a group of a match. Pure."""

import re
from collections.abc import Callable
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:\{(\w+)\}|([0-9])|(\w+))")


def names_in(text: str) -> list[str]:
    """Return the names of the variables in a text."""
    return [next(filter(None, names)) for names in _REFERENCE.findall(text)] if "$" in text else []


def expand(text: str, value: Callable[[str], str]) -> str:
    """Return a text with the values of its variables."""
    if "$" not in text:
        return text
    return _REFERENCE.sub(lambda match: value(match[1] or match[2] or match[3]), text)
