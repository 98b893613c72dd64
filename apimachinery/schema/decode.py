"""Decode as kube-apiserver does: from a tree and its type, the tree that Go would keep, and the errors.

All writes take the quick half, `normal.py`; the slow half, `faults.py`, finds what is wrong. The caller decides whether
that is an error, a warning or nothing, and how the message begins. A received text is checked for its depth and for
duplicate keys, because parsers recurse on nested values and silently keep the last of two values with the same key.
"""

from itertools import accumulate
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery.schema import document, faults
from mockube.apimachinery.schema.model import Type
from mockube.apimachinery.schema.normal import Normaliser, WrongKind

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


class DecodeError(ValueError):
    """The document is not of its type; the message is Go's."""


class DecodedObject(Struct, frozen=True):
    tree: Any
    strict: tuple[str, ...] = ()
    """What strict decoding refuses: `unknown field "spec.x"`, `duplicate field "spec.y"`."""


class Decoder:
    """Decodes for all types, each compiled when it is first needed; `normaliser` may have compiled some before."""

    def __init__(self, normaliser: Normaliser | None = None) -> None:
        self._normaliser = normaliser or Normaliser()

    def decode_applied(self, of: Type, tree: Any, *, strict: bool, before: Any = None) -> DecodedObject:
        """Decode the result of server-side apply, which was not read from a text."""
        return self.decode(of, tree, strict=strict, before=before)

    def decode(
        self, of: Type, tree: Any, *, text: bytes = b"", strict: bool = True, before: Any = None
    ) -> DecodedObject:
        """Decode without changing `tree`. `text` is the JSON from which it was read, if any, and makes messages exact.

        `before` is a decoded tree from which `tree` was made, if any: what they share is not decoded again.
        """
        if strict and text and has_duplicates(text, tree):
            return self._decode_duplicates(of, document.parse(text))
        pruned: list[str] = []
        try:
            normal = self._normaliser.normalise(of, tree, pruned, before)
        except (WrongKind, ValueError) as refusal:
            error = faults.find(of, document.parse(text) if text else tree).error
            assert error, f"{of.go} was refused for no reason"
            raise DecodeError(error) from refusal
        unknown = faults.find(of, tree).strict if strict and pruned else ()
        return DecodedObject(normal, unknown)

    def _decode_duplicates(self, of: Type, read: Any) -> DecodedObject:
        """The tree has only one of the values, so the document itself is checked first."""
        findings = faults.find(of, read)
        if findings.error:
            raise DecodeError(findings.error)
        return DecodedObject(
            self._normaliser.normalise(of, document.merge_repeated_fields(of, read), []), findings.strict
        )


# --- depth and duplicate keys of a JSON text, from its punctuation: one pass without parsing


def is_too_deep(text: bytes) -> bool:
    """Return whether a JSON text is nested deeper than `MAX_DEPTH`. For an invalid text the result may be anything."""
    if len(text) <= MAX_DEPTH:
        return False
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH and _depth(text) > MAX_DEPTH


def has_duplicates(text: bytes, tree: Any) -> bool:
    """Whether an object in `text` has a key twice; `tree` is what orjson read from it."""
    written = orjson.dumps(tree)
    if written == text:
        return False
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
