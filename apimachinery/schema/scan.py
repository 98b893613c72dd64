"""The depth of a JSON text, and whether it has a key twice, from its punctuation.

For received texts: one pass without parsing, because parsers recurse on nested values and silently keep the last of
two values with the same key. `faults.py` finds the key.
"""

from itertools import accumulate
from typing import Any, Final

import orjson

MAX_DEPTH: Final = 200
"""Far above what any type needs, below what can be handled: orjson writes 254 levels, Python recurses about 1000."""

_ESCAPED_COLON: Final = b"\\u003"
"""How a colon in a string may begin that orjson writes as itself."""

_BRACKETS: Final = b"{[]}"
_ALL_ELSE: Final = bytes(set(range(256)) - set(_BRACKETS))
_STEPS: Final = bytes.maketrans(_BRACKETS, bytes((1, 1, 255, 255)))
"""One level down for what opens and one up for what closes, which is 255 in a signed byte."""

_PIECE: Final = 1 << 16
"""Bytes for one call: no other thread runs meanwhile."""


def is_too_deep(text: bytes) -> bool:
    """Return whether a JSON text is nested deeper than `MAX_DEPTH`. For an invalid text the result may be anything."""
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH and _depth(text) > MAX_DEPTH


def has_duplicates(text: bytes, tree: Any) -> bool:
    """Whether an object in `text` has a key twice; `tree` is what orjson read from it."""
    written = orjson.dumps(tree)
    if text.find(_ESCAPED_COLON) < 0:
        # Then strings have as many colons in both, and every member has one more.
        return written.count(b":") != text.count(b":")
    return _members(written) != _members(text)


def _depth(text: bytes) -> int:
    steps = memoryview(_punctuation(text).translate(_STEPS, _ALL_ELSE)).cast("b")
    depth = deepest = 0
    for start in range(0, len(steps), _PIECE):
        piece = steps[start : start + _PIECE]
        deepest_here = max(accumulate(piece, initial=depth))
        deepest = max(deepest, deepest_here)
        depth += sum(piece)
    return deepest


def _members(text: bytes) -> int:
    """How many members all objects have together: each has one colon."""
    return _punctuation(text).count(b":")


def _punctuation(text: bytes) -> bytes:
    """What is not in strings."""
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    pieces, in_string = [], 0
    for start in range(0, len(unescaped), _PIECE):
        parts = unescaped[start : start + _PIECE].split(b'"')
        pieces.append(b"".join(parts[in_string::2]))
        in_string ^= (len(parts) - 1) & 1
    return b"".join(pieces)
