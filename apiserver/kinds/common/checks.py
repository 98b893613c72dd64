"""The elements of validation rules: checks of one value, and combinators of checks, so that most rules have one line.

A check takes a value and its path, and returns the errors. The check of a struct takes its tree. Which function checks a
field of a struct depends on the field in Go:

    optional    the check runs if the value is not empty         `if len(x) > 0`
    pointer     the check runs if the field is present           `if x != nil`
    require     an empty value is an error, else the check runs  `if len(x) == 0 { Required }`
    field       the check always runs: on `absent` if the field is missing

Almost all values are valid, so most checks return a list: a generator would take longer than most checks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree

Check: TypeAlias = Callable[[Any, Path], Iterable[FieldError]]

Problems: TypeAlias = Callable[[Any], Iterable[str]]
"""Returns the problems of a value as texts, like the checks in `mockube.apimachinery.names`."""

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
IMMUTABLE: Final = "field is immutable"


class _Row(NamedTuple):
    """A check of a value, or of one of its fields."""

    check: Check
    name: str = ""
    """The name of the checked field; "": the value itself is checked."""
    step: str = ""
    empty: Check | None = None
    """The check if the field is present and empty."""
    absent: Check | None = None
    """The check if the field is missing."""


class _AllOf:
    """The checks of one value, in order. Most fields are missing, and then nothing is called."""

    __slots__ = ("_named_rows", "rows")

    def __init__(self, *rows: _Row) -> None:
        self.rows = rows
        self._named_rows = [(row.name, row.absent, row) for row in rows]

    def __call__(self, value: Any, path: Path) -> Iterable[FieldError]:
        field_errors: list[FieldError] = []
        for name, absent, row in self._named_rows:
            if not name:
                field_errors += row.check(value, path)
                continue
            item = value.get(name)
            if item is None:
                if absent is not None:
                    field_errors += absent(item, Path(path, row.step))
            elif item:
                field_errors += row.check(item, Path(path, row.step))
            elif row.empty is not None:
                field_errors += row.empty(item, Path(path, row.step))
        return field_errors


def all_of(*checks: Check) -> Check:
    """Return a check that runs all checks, in order."""
    if len(checks) == 1:
        return checks[0]
    rows = (check.rows if isinstance(check, _AllOf) else (_Row(check),) for check in checks)
    return _AllOf(*chain.from_iterable(rows))


def canonical(value: Any) -> bytes:
    """Return the JSON of a value with sorted keys: equal values have the same text, which can be in a set."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


# --- into a field of a struct


def field(name: str, *checks: Check, absent: Any = None) -> Check:
    """Check a field with any value; a missing field is checked as `absent`."""
    inner = all_of(*checks)
    if [*inner(absent, ROOT)]:
        return _into(name, inner, empty=inner, absent=lambda _, path: inner(absent, path))
    # An absent value has no errors, so it is not checked each time.
    return _into(name, inner, empty=inner)


def pointer(name: str, *checks: Check) -> Check:
    """Check a field that is present, even if it is empty."""
    inner = all_of(*checks)
    return _into(name, inner, empty=inner)


def optional(name: str, *checks: Check) -> Check:
    """Check a field that is not empty."""
    return _into(name, all_of(*checks))


def require(name: str, *checks: Check, detail: str = "") -> Check:
    """Refuse an empty or missing field, and check any other."""

    def check_missing(_value: Any, path: Path) -> Iterable[FieldError]:
        return (errors.required(path, detail),)

    return _into(name, all_of(*checks), empty=check_missing, absent=check_missing)


def _into(name: str, check: Check, *, empty: Check | None = None, absent: Check | None = None) -> Check:
    return _AllOf(_Row(check, name, f".{name}", empty, absent))


def member(members: Mapping[str, Check], *, missing: str, surplus: str) -> Check:
    """Check the first present field of a union; refuse other present ones, and a union without any."""

    def check(tree: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        present = [name for name in members if tree.get(name) is not None]
        if not present:
            yield errors.required(path, missing)
        for position, name in enumerate(present):
            if position:
                yield errors.forbidden(path.child(name), surplus)
            else:
                yield from members[name](tree[name], path.child(name))

    return check


# --- into a list or a map


def each_item(*checks: Check) -> Check:
    """Check every element of a list, which may be missing."""
    inner = all_of(*checks)

    def check(values: Iterable[Any] | None, path: Path) -> Iterable[FieldError]:
        field_errors: list[FieldError] = []
        for index, value in enumerate(values or ()):
            field_errors += inner(value, Path(path, index))
        return field_errors

    return check


def each_value(*checks: Check) -> Check:
    """Check every value of a map."""
    inner = all_of(*checks)

    def check(values: ReadOnlyTree | None, path: Path) -> Iterable[FieldError]:
        field_errors: list[FieldError] = []
        for key, value in (values or {}).items():
            field_errors += inner(value, path.key(key))
        return field_errors

    return check


def unique(*names: str) -> Check:
    """Refuse an element that equals an earlier one: as a whole, or in these fields, of which the last is reported."""

    def check(values: Iterable[Any] | None, path: Path) -> Iterator[FieldError]:
        seen = set()
        for index, value in enumerate(values or ()):
            key = tuple(value.get(name) for name in names) if names else value
            if key in seen:
                error_path = path.index(index).child(names[-1]) if names else path.index(index)
                yield errors.duplicate(error_path, value.get(names[-1]) if names else value)
            seen.add(key)

    return check


# --- of a value


def report(problems: Problems) -> Check:
    """Refuse a value with problems; each is an error."""

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        texts = [*problems(value)]
        return [errors.invalid(path, value, problem) for problem in texts] if texts else ()

    return check


def require_that(holds: Callable[[Any], bool], message: str) -> Check:
    """Refuse a value for which a condition does not hold."""

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return () if holds(value) else (errors.invalid(path, value, message),)

    return check


def one_of(*values: str) -> Check:
    """Refuse every other value. Errors list the values in this order: upstream sorts most lists, but not all."""
    supported = frozenset(values)

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return () if value in supported else (errors.not_supported(path, value, values),)

    return check


def required_one_of(*values: str) -> Check:
    """Refuse every other value, and report an empty one as missing."""
    check_choice = one_of(*values)
    return lambda value, path: check_choice(value, path) if value else (errors.required(path),)


def max_bytes(limit: int) -> Check:
    """Refuse a text with more bytes."""

    def check(value: str, path: Path) -> Iterable[FieldError]:
        return (errors.too_long(path, limit),) if len(value.encode()) > limit else ()

    return check


def max_items(limit: int) -> Check:
    """Refuse a list with more items."""

    def check(values: Any, path: Path) -> Iterable[FieldError]:
        return (errors.too_many(path, len(values), limit),) if len(values) > limit else ()

    return check


def refuse_any(detail: str) -> Check:
    """Refuse any value: for fields that may not be set here."""

    def check(_value: Any, path: Path) -> Iterable[FieldError]:
        return (errors.forbidden(path, detail),)

    return check


def between(minimum: int, maximum: int) -> Check:
    return require_that(
        lambda value: minimum <= value <= maximum, f"must be between {minimum} and {maximum}, inclusive"
    )


non_negative: Final = require_that(lambda value: value is None or value >= 0, NOT_NEGATIVE)
positive: Final = require_that(lambda value: value is not None and value > 0, NOT_POSITIVE)
port_number: Final = between(1, 65535)
trimmed: Final = require_that(
    lambda text: text == text.strip(), "must not have leading or trailing whitespace"
)


# --- of a change


def immutable(new: Any, old: Any, path: Path) -> Iterable[FieldError]:
    """Refuse a change of a value."""
    return () if is_same(new, old) else (errors.invalid(path, new, IMMUTABLE),)


def is_same(new: Any, old: Any) -> bool:
    """Return whether two values are equal in Go's semantic comparison, in which absent and empty collections are equal."""
    return bool(new == old or _comparable(new) == _comparable(old))


def _comparable(value: Any) -> Any:
    return None if value == {} else _without_empty(value)


def _without_empty(value: Any) -> Any:
    """Return a value with None for empty lists at any depth. Other empty values stay, because pointers may be to 0 or ""."""
    if isinstance(value, dict):
        inner = ((name, _without_empty(item)) for name, item in value.items())
        return {name: item for name, item in inner if item is not None}
    if isinstance(value, list):
        return [_without_empty(item) for item in value] or None
    return value


def with_old_values(tree: ReadOnlyTree, before: ReadOnlyTree, *names: str) -> ReadOnlyTree:
    """Return the struct with some fields replaced by their old values, to compare the other fields."""
    other_fields = {name: value for name, value in tree.items() if name not in names}
    return other_fields | {name: before[name] for name in names if name in before}
