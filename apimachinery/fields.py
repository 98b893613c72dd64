"""Field selectors: `status.phase=Running,spec.nodeName!=`.

Which fields a resource offers, and where they are in an object, is the resource's business: here a field is a name
with a text. A field that is absent is an empty text.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct


class FieldSelectorError(ValueError):
    """Something is not a field selector; the message is upstream's."""


class Term(Struct, frozen=True):
    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


Transform: TypeAlias = Callable[[str, str], tuple[str, str]]
"""A resource's own names for a field and its value; both empty if the term has no effect."""


class Selector(Struct, frozen=True):
    """Terms that must all hold; without any it matches everything."""

    terms: tuple[Term, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.terms

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(term.field, "") == term.value) is term.equal for term in self.terms)

    def requires_exact_match(self, field: str) -> str | None:
        """Return the only value that the selector allows for a field, for a lookup in an index."""
        return next((term.value for term in self.terms if term.equal and term.field == field), None)

    def transform(self, function: Transform) -> "Selector":
        named = ((*function(term.field, term.value), term.equal) for term in self.terms)
        return Selector(tuple(Term(field, value, equal) for field, value, equal in named if field or value))

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


EVERYTHING: Final = Selector()

_SPECIAL = re.compile(r"([\\,=])")
_ESCAPE_OR_SPECIAL = re.compile(r"\\(.?)|([,=])", re.DOTALL)
_TERM = re.compile(r"(?:[^,\\]|\\.?)+", re.DOTALL)
_PARTS = re.compile(r"(.*?)(!=|==?)(.*)", re.DOTALL)


def escape(value: str) -> str:
    """A value as a selector's text holds it."""
    return _SPECIAL.sub(r"\\\1", value)


def unescape(text: str) -> str:
    return _ESCAPE_OR_SPECIAL.sub(_unescape, text)


def _unescape(match: re.Match[str]) -> str:
    escaped, special = match.groups()
    if special:
        # Upstream prints the character's number.
        raise FieldSelectorError(f"invalid field selector: unescaped character in value: {ord(special)}")
    if not _SPECIAL.fullmatch(escaped):
        raise FieldSelectorError(f"invalid field selector: invalid escape sequence: {match.group()}")
    return str(escaped)


def parse(text: str) -> Selector:
    """Return the selector of a text; raise `FieldSelectorError` if it is invalid."""
    terms = (_parse_term(term, text) for term in sorted(_TERM.findall(text)))
    return Selector(tuple(term for term in terms if term.field or term.value))


def _parse_term(term: str, text: str) -> Term:
    parts = _PARTS.fullmatch(term)
    if parts is None:
        raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    field, operator, value = parts.groups()
    return Term(field, unescape(value), operator != "!=")


class SelectableField(Struct, frozen=True):
    """What a field selector may select by."""

    label: str
    paths: tuple[tuple[str, ...], ...]
    """Where its value is in the stored object: at the first of them that is not empty."""
    absent: str = ""
    """What a field that is not there counts as: Go's zero value, as text."""


def selectable(label: str, *paths: str, absent: str = "") -> SelectableField:
    """Name a field by its path, unless it is elsewhere in the stored object."""
    return SelectableField(label, tuple(tuple(path.split(".")) for path in paths or (label,)), absent)


METADATA_NAME = selectable("metadata.name")
METADATA_NAMESPACE = selectable("metadata.namespace")
