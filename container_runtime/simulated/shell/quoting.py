"""Quoting of texts, so that the shell reads them as they are."""

import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")


def quote(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def quote_if_needed(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else quote(text)


def double_quote(text: str) -> str:
    """Return a text in double quotes."""
    return '"' + re.sub(r'([$`"\\])', r"\\\1", text) + '"'
