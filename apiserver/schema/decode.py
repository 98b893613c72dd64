"""Decoding as in kube-apiserver: a tree and its type yield the tree that Go would keep, and the errors.

Every write uses the fast part, `normal.py`; the slow part, `decoder_errors.py`, finds the errors. The caller decides whether they
are errors, warnings or ignored, and how the message begins. A received text is checked for its depth and for duplicate
keys: parsers recurse on nested values, and silently keep only the last value of a duplicate key.
"""

from itertools import accumulate
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery.schema.model import SchemaType

from . import decoder_errors, document
from .normal import Normaliser, WrongKind

MAX_DEPTH: Final = 200
"""The maximum depth of a text: more than any type needs, less than orjson's 254 levels and Python's recursion limit."""

_ESCAPED_COLON: Final = b"\\u003"
"""The start of escaped colons in strings, which orjson encodes unescaped."""

_BRACKETS: Final = b"{[]}"
_OTHER_BYTES: Final = bytes(set(range(256)) - set(_BRACKETS))
_DEPTH_CHANGES: Final = bytes.maketrans(_BRACKETS, bytes((1, 1, 255, 255)))
"""The change of the depth at each bracket: 1 at an opening one, -1 (255 as a signed byte) at a closing one."""

_PIECE_SIZE: Final = 1 << 16
"""The number of bytes per call: no other thread runs during a call."""


class DecodeError(ValueError):
    """A document does not conform to its type; the message is Go's."""


class DecodedObject(Struct, frozen=True):
    tree: Any
    strict: tuple[str, ...] = ()
    """The errors of strict decoding: `unknown field "spec.x"`, `duplicate field "spec.y"`."""


class Decoder:
    """A decoder for all types, each compiled on first use. A shared `normaliser` may already have compiled some."""

    def __init__(self, normaliser: Normaliser | None = None) -> None:
        self._normaliser = normaliser or Normaliser()

    def decode_applied(
        self, type_: SchemaType, tree: Any, *, strict: bool, before: Any = None
    ) -> DecodedObject:
        """Decode the result of server-side apply, which has no text."""
        return self.decode(type_, tree, strict=strict, before=before)

    def decode(
        self, type_: SchemaType, tree: Any, *, text: bytes = b"", strict: bool = True, before: Any = None
    ) -> DecodedObject:
        """Decode a tree without changing it, or raise DecodeError. `text` is its JSON, if any, for exact messages.

        `before` is the decoded tree that `tree` is a change of, if any: parts that both share are not decoded again.
        """
        if text and has_duplicates(text, tree):
            merged = self._decode_duplicates(type_, document.parse(text))
            return merged if strict else DecodedObject(merged.tree)
        pruned: list[str] = []
        try:
            normal = self._normaliser.normalise(type_, tree, pruned, before)
        except (WrongKind, ValueError) as refusal:
            error = decoder_errors.find(type_, document.parse(text) if text else tree).error
            assert error, f"{type_.go} was refused without an error"
            raise DecodeError(error) from refusal
        unknown = decoder_errors.find(type_, tree).strict if strict and pruned else ()
        return DecodedObject(normal, unknown)

    def _decode_duplicates(self, type_: SchemaType, read: Any) -> DecodedObject:
        """Decode a document with duplicate keys. A tree has only the last value of each, so the document itself is checked."""
        findings = decoder_errors.find(type_, read)
        if findings.error:
            raise DecodeError(findings.error)
        return DecodedObject(
            self._normaliser.normalise(type_, document.merge_repeated_fields(type_, read), []),
            findings.strict,
        )


# --- the depth and the duplicate keys of a JSON text, from its punctuation in one pass, without parsing


def is_too_deep(text: bytes) -> bool:
    """Return whether a JSON text is nested deeper than `MAX_DEPTH`. The result for an invalid text is undefined."""
    if len(text) <= MAX_DEPTH:
        return False
    return text.count(b"{") + text.count(b"[") > MAX_DEPTH and _depth(text) > MAX_DEPTH


def has_duplicates(text: bytes, tree: Any) -> bool:
    """Return whether an object in `text` has duplicate keys; `tree` is the text as orjson decodes it."""
    written = orjson.dumps(tree)
    if written == text:
        return False
    if text.find(_ESCAPED_COLON) < 0:
        # Strings have equally many colons in both texts, and every member has one more.
        return written.count(b":") != text.count(b":")
    return _members(written) != _members(text)


def _depth(text: bytes) -> int:
    depth_changes = memoryview(_punctuation(text).translate(_DEPTH_CHANGES, _OTHER_BYTES)).cast("b")
    depth = deepest = 0
    for start in range(0, len(depth_changes), _PIECE_SIZE):
        piece = depth_changes[start : start + _PIECE_SIZE]
        deepest_here = max(accumulate(piece, initial=depth))
        deepest = max(deepest, deepest_here)
        depth += sum(piece)
    return deepest


def _members(text: bytes) -> int:
    """Return the number of members of all objects: each has one colon."""
    return _punctuation(text).count(b":")


def _punctuation(text: bytes) -> bytes:
    """Return the text outside of strings."""
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"")
    pieces, in_string = [], 0
    for start in range(0, len(unescaped), _PIECE_SIZE):
        parts = unescaped[start : start + _PIECE_SIZE].split(b'"')
        pieces.append(b"".join(parts[in_string::2]))
        in_string ^= (len(parts) - 1) & 1
    return b"".join(pieces)
