"""Decoding as kube-apiserver does it: a tree and its type in, the tree that Go would keep and its complaints out.

Puts together the quick half, which all writes take, and the slow half, which finds what is wrong. Whether a complaint
is an error, a warning or nothing is up to the caller; so is how the message begins.
"""

from typing import Any

from msgspec import Struct

from mockube.apimachinery.schema import document, faults
from mockube.apimachinery.schema.model import Type
from mockube.apimachinery.schema.normal import Normaliser
from mockube.apimachinery.schema.scalars import WrongKind
from mockube.apimachinery.schema.scan import has_duplicates
from mockube.apimachinery.schema.settle import settle


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

    def decode_applied(self, of: Type, tree: Any, *, strict: bool) -> DecodedObject:
        """What server-side apply made of an object, which was not read from a text."""
        return self.decode(of, tree, strict=strict)

    def decode(
        self, of: Type, tree: Any, *, text: bytes = b"", strict: bool = True, before: Any = None
    ) -> DecodedObject:
        """Never changes `tree`. `text` is the JSON that it was read from, if it was, and makes messages exact.

        `before` is what was decoded once, if `tree` was made from that: what they share is not decoded again.
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
        """The tree shows one of the values only, so the document itself is looked at first."""
        findings = faults.find(of, read)
        if findings.error:
            raise DecodeError(findings.error)
        return DecodedObject(self._normaliser.normalise(of, settle(of, read), []), findings.strict)
