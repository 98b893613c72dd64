"""JSON parsed without a loss: repeated keys, and the original form of numbers.

Slower than orjson and only for the error messages of invalid texts. Objects are `Members` here, numbers `Literal`s;
everything else is as in orjson.
"""

import json  # noqa: TID251 - orjson keeps neither a key's first value nor the digits of a number
from typing import Any


class Members(list[tuple[str, Any]]):
    """An object's members, in order."""


class Literal(str):
    """A number as it was written."""

    __slots__ = ()

    def number(self) -> int | float:
        """What orjson would have read: an integer if 64 bits can hold it."""
        if len(self) <= 20 and self.lstrip("-").isdigit() and -(2**63) <= int(self) < 2**64:
            return int(self)
        return float(self)


def parse(text: bytes) -> Any:
    """The document of a text that orjson has read already."""
    return json.loads(text, object_pairs_hook=Members, parse_int=_literal, parse_float=_literal)


def _literal(text: str) -> Literal:
    # A function in Python lets other threads run: there may be a million numbers.
    return Literal(text)
