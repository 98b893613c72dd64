"""The error about pools, and how it quotes what is wrong. Pure."""

from typing import Final

from mockube.apimachinery.gotext import quote

EXAMPLE: Final = "cpu=4,memory=16Gi:3"
_MAX_QUOTED: Final = 80


class PoolError(ValueError):
    """Pools are invalid; the message is one line."""


def quote_short(text: str) -> str:
    """Quote a text; a long one is shortened."""
    return quote(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")
