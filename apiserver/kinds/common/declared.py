"""Rules that upstream declares in the tags of its types (declarative validation), beside those that it writes by hand.

Upstream runs both. An error of a declared rule replaces the equal one of the rule by hand, and comes after all of
those. The declared rules of a kind are in the order of the fields of its type. A module of a kind lists those that
upstream enforces; rules that it only compares (`+k8s:alpha`) are not listed.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from msgspec.structs import replace

from mockube.apimachinery.errors import OMITTED, ErrorType, FieldError
from mockube.apimachinery.meta import value_at
from mockube.apimachinery.tree import ReadOnlyTree

from .checks import IMMUTABLE

_ITEM: Final = "[]"
_INDEX: Final = re.compile(r"\[([0-9]+)\]")


class DeclaredRule(NamedTuple):
    """A declared rule for a field, and which error of the rule by hand it replaces."""

    field: str
    """The path of the field, such as `subjects[].name`."""
    type: ErrorType
    details: tuple[str, ...] = ()
    """The details of the replaced error; empty for any of this type, except for that of a change."""
    reword: Callable[[FieldError], FieldError] | None = None
    """Returns the error of the declared rule if that has a value or a detail."""
    ends: bool = True
    """Whether rules that do not end, and those of the fields in the field, do not run after an error."""
    create_only: bool = False
    """Whether every change that violates the rule is refused by another one."""
    discriminator: str = ""
    """The path of the field on which the rule depends. The rule runs if either changes."""

    def replaces(self, error: FieldError) -> bool:
        if error.type is not self.type:
            return False
        return error.detail in self.details if self.details else error.detail != IMMUTABLE

    def error(self, replaced: FieldError) -> FieldError:
        if self.reword is not None:
            return self.reword(replaced)
        is_change = self.details == (IMMUTABLE,)
        return replace(replaced, value=None if is_change else OMITTED, detail=IMMUTABLE if is_change else "")


def required(field: str, *, create_only: bool = False, discriminator: str = "") -> DeclaredRule:
    return DeclaredRule(field, ErrorType.REQUIRED, create_only=create_only, discriminator=discriminator)


def forbidden(field: str, *, discriminator: str) -> DeclaredRule:
    """Return the rule of a member of a union, whose fields are checked even if it is forbidden."""
    return DeclaredRule(field, ErrorType.FORBIDDEN, ends=False, discriminator=discriminator)


def immutable(field: str) -> DeclaredRule:
    """Return the rule of an immutable field, whose error does not show the value."""
    return DeclaredRule(field, ErrorType.INVALID, details=(IMMUTABLE,))


def _same(error: FieldError) -> FieldError:
    return error


def _in_bytes(error: FieldError) -> FieldError:
    if not error.detail.startswith("must be no more than"):
        return error
    return replace(error, detail=error.detail.replace(" characters", " bytes"))


def _in_characters(error: FieldError) -> FieldError:
    return replace(error, detail=error.detail.replace(" bytes", " characters"))


def _caseless(error: FieldError) -> FieldError:
    detail = error.detail.replace(
        "a lowercase RFC 1123 subdomain must consist of lower case", "an RFC 1123 subdomain must consist of"
    )
    return _in_bytes(replace(error, detail=detail.replace("'example.com'", "'Example.com'")))


def valid(field: str, *details: str) -> DeclaredRule:
    """Return a rule of valid values. Several of a field may report errors."""
    return DeclaredRule(field, ErrorType.INVALID, details, reword=_in_bytes, ends=False)


def caseless_subdomain(field: str) -> DeclaredRule:
    return DeclaredRule(field, ErrorType.INVALID, reword=_caseless, ends=False)


def enumeration(field: str) -> DeclaredRule:
    return DeclaredRule(field, ErrorType.NOT_SUPPORTED, reword=_same, ends=False)


def at_most(field: str) -> DeclaredRule:
    return DeclaredRule(field, ErrorType.TOO_MANY, reword=_same)


def short(field: str) -> DeclaredRule:
    """Return the rule of a string's length, which counts characters."""
    return DeclaredRule(field, ErrorType.TOO_LONG, reword=_in_characters, ends=False)


class DeclaredError(FieldError, frozen=True, kw_only=True):
    """The error of a declared rule of a struct that several kinds have; it comes last, after those of the kind."""


def as_declared(field_errors: Iterable[FieldError]) -> Iterator[DeclaredError]:
    """Yield the errors of declared rules that no rule by hand repeats."""
    for error in field_errors:
        yield DeclaredError(type=error.type, field=error.field, value=error.value, detail=error.detail)


Additional: TypeAlias = Callable[[ReadOnlyTree, ReadOnlyTree | None], Iterable[FieldError]]
"""Returns the errors of declared rules without an equal one by hand. Takes the new object and the old one, if any."""


def _no_errors(_new: ReadOnlyTree, _old: ReadOnlyTree | None) -> Iterable[FieldError]:
    return ()


class DeclaredRules:
    """The declared rules of a kind."""

    def __init__(self, *rules: DeclaredRule, additional: Additional = _no_errors) -> None:
        fields = [rule.field for rule in rules]
        self._rows = [(rule, fields.index(rule.field)) for rule in rules]
        self._additional = additional

    def merge(
        self, field_errors: Sequence[FieldError], new: ReadOnlyTree, old: ReadOnlyTree | None = None
    ) -> list[FieldError]:
        """Return the errors of the rules by hand that no declared rule replaces, then those of the declared rules.

        Of equal errors by hand, the first one is returned.
        """
        all_errors = [*field_errors, *self._additional(new, old)]
        if not all_errors:
            return all_errors
        remaining = [error for error in all_errors if not isinstance(error, DeclaredError)]
        last = (error for error in all_errors if isinstance(error, DeclaredError))
        declared_errors: list[tuple[tuple[int, tuple[int, ...], int], FieldError]] = []
        ended: set[str] = set()
        for rule, rank in self._rows:
            if old is not None and (rule.create_only or _is_unchanged(rule, new, old)):
                continue
            matches: dict[tuple[str, str], tuple[tuple[int, ...], FieldError]] = {}
            others = []
            for error in remaining:
                is_replaced = rule.replaces(error) and _INDEX.sub(_ITEM, error.field) == rule.field
                if not is_replaced or not ended.isdisjoint(_parents(error.field, itself=not rule.ends)):
                    others.append(error)
                else:
                    # A rule by hand that runs twice is one declared rule.
                    declared_error = rule.error(error)
                    matches.setdefault(
                        (error.field, declared_error.detail),
                        (tuple(map(int, _INDEX.findall(error.field))), declared_error),
                    )
            remaining = others
            declared_errors += (
                ((rank, indices, position), error)
                for position, (indices, error) in enumerate(matches.values())
            )
            if rule.ends:
                ended.update(name for name, _detail in matches)
        declared_errors.sort(key=lambda each: each[0])
        return [*distinct(remaining), *(error for _position, error in declared_errors), *last]


NO_RULES: Final = DeclaredRules()


def distinct(field_errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Return each error once."""
    seen: dict[tuple[str, ErrorType, str], set[Hashable]] = {}
    texts: dict[int, bytes] = {}
    for error in field_errors:
        values = seen.setdefault((error.field, error.type, error.detail), set())
        value = _comparable(error.value, texts)
        if value not in values:
            values.add(value)
            yield error


def _comparable(value: Any, texts: dict[int, bytes]) -> Hashable:
    """Return what is equal for equal values, and can be in a set; `texts` has those of values that many errors share."""
    if not isinstance(value, dict | list | tuple):
        immutable_value: Hashable = value
        return immutable_value
    if id(value) not in texts:
        texts[id(value)] = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return texts[id(value)]


def _parents(field: str, *, itself: bool) -> Iterator[str]:
    """Return the fields that a field is in, and itself."""
    if itself:
        yield field
    for position, character in enumerate(field):
        if character in ".[":
            yield field[:position]


def _is_unchanged(rule: DeclaredRule, new: ReadOnlyTree, old: ReadOnlyTree) -> bool:
    """Return whether an update does not change the field. Items of lists are all checked if one changes."""
    for field in (rule.field, rule.discriminator or rule.field):
        names = field.partition(_ITEM)[0].split(".")
        if value_at(new, names) != value_at(old, names):
            return False
    return True
