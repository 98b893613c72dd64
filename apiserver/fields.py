"""Field selectors: `status.phase=Running,spec.nodeName!=`.

Each resource defines its selectable fields and their paths. In this module a field is a name with a text; an absent field
is an empty text.
"""

import re
from collections.abc import Mapping

from msgspec import Struct


class FieldSelectorError(ValueError):
    """A text is not a valid field selector; the message is upstream's."""


class Term(Struct, frozen=True):
    """One requirement: a field is equal to a value, or is not."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


class Selector(Struct, frozen=True):
    """Terms that must all match. A selector without terms matches everything."""

    terms: tuple[Term, ...] = ()

    @property
    def empty(self) -> bool:
        return not self.terms

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(term.field, "") == term.value) is term.equal for term in self.terms)

    def requires_exact_match(self, field: str) -> str | None:
        """Return the only value that the selector allows for a field, for a lookup in an index."""
        return next((term.value for term in self.terms if term.equal and term.field == field), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


_SPECIAL = re.compile(r"([\\,=])")
_ESCAPE_OR_SPECIAL = re.compile(r"\\(.?)|([,=])", re.DOTALL)
_TERM = re.compile(r"(?:[^,\\]|\\.?)+", re.DOTALL)
_PARTS = re.compile(r"(.*?)(!=|==?)(.*)", re.DOTALL)


def escape(value: str) -> str:
    """Escape a value for the text of a selector."""
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
    """Parse a field selector; raise `FieldSelectorError` if it is invalid."""
    terms = (_parse_term(term, text) for term in sorted(_TERM.findall(text)))
    return Selector(tuple(term for term in terms if term.field or term.value))


def _parse_term(term: str, text: str) -> Term:
    parts = _PARTS.fullmatch(term)
    if parts is None:
        raise FieldSelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    field, operator, value = parts.groups()
    return Term(field, unescape(value), operator != "!=")


class SelectableField(Struct, frozen=True):
    """A field that field selectors can use."""

    label: str
    paths: tuple[tuple[str, ...], ...]
    """The paths of the value in a stored object: the first one that is not empty counts."""
    absent: str = ""
    """The value of an absent field: Go's zero value, as text."""


def selectable(label: str, *paths: str, absent: str = "") -> SelectableField:
    """Return a selectable field. Its path in the stored object is the label, unless paths are given."""
    return SelectableField(label, tuple(tuple(path.split(".")) for path in paths or (label,)), absent)


METADATA_NAME = selectable("metadata.name")
METADATA_NAMESPACE = selectable("metadata.namespace")
