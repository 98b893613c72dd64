"""Validation of a value by its schema, with kube-openapi's messages.

In its paths, members of a map follow a dot, like fields.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol, TypeAlias

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.cancellation import raise_if_cancelled
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.formats import rule
from mockube.apimachinery.gonumbers import as_decoded_by_go
from mockube.apimachinery.paths import ROOT, Path
from mockube.apiserver.kinds.common.checks import Check

from . import ratcheting, values
from .numbers import check_number, is_integer
from .schema import ANY_VALUE, Schema, additional_properties, properties, types

_KINDS: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
MAX_ERRORS: Final = 20_000
"""The number of errors after which a value's other parts are not checked: a few bytes may lack many fields."""
_TYPE_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: value.__class__ is dict,
    "array": lambda value: value.__class__ is list,
    "string": lambda value: value.__class__ is str,
    "boolean": lambda value: value.__class__ is bool,
    "integer": lambda value: value.__class__ in (int, float) and is_integer(as_decoded_by_go(value)),
    "number": lambda value: value.__class__ in (int, float),
}
_NUMBER_FORMATS: Final[Mapping[str, Sequence[str]]] = {
    "integer": ("int32", "int64"),
    "number": ("float", "double"),
}
_GO_FORMATS: Final = {"integer": "int64", "number": "float64"}
"""The format of a number from JSON in upstream's messages."""


class ValueChecker(Protocol):
    """Checks a value and its parts. With `old`, errors of unchanged parts are ignored.

    Old members are found by their names, and old elements by the keys of a list of type map.
    """

    def __call__(self, value: Any, path: Path, old: Any = ...) -> Sequence[FieldError]: ...


_Counted: TypeAlias = tuple[Iterable[FieldError], int]
"""Errors, and upstream's count of passed checks, which determines the alternative that is closest to a value."""
_Combination: TypeAlias = Callable[[Any, Path], _Counted]
_Counter: TypeAlias = Callable[[Any, Path, Any], tuple[list[FieldError], int]]
_Walked: TypeAlias = tuple[list[FieldError], bool, int]
"""The errors of members or elements, whether one is known to differ from its old value, and the count."""
_Walk: TypeAlias = Callable[[Any, Path, Any], _Walked]

_NONE: Final = object()
"""The old value if there is none, or if it is not compared."""
_COUNT_OF_ANY: Final = 4
_COUNTS_BY_CLASS: Final = {str: 1, bool: 0, int: 2, float: 2, list: 2, dict: 1, type(None): 0}
"""The passed checks that upstream always counts: for any value, and for a value of a class."""


def checker(schema: Schema) -> ValueChecker:
    """Return the checker of a schema. It reports an error that several alternatives have only once."""
    counter = _counter(schema)

    def check(value: Any, path: Path, old: Any = _NONE) -> list[FieldError]:
        field_errors, _ = counter(value, path, old)
        return (
            list({str(error): error for error in field_errors}.values())
            if len(field_errors) > 1
            else field_errors
        )

    return check


def _counter(schema: Schema) -> _Counter:
    type_check = _type_check(schema) if types(schema) or _format(schema) else _no_errors
    combinations = [make(schema[name]) for name, make in _COMBINATIONS.items() if schema.get(name)]
    enum = [values.enum_check(schema["enum"])] if schema.get("enum") else []
    by_class: dict[type, tuple[Sequence[Check], _Walk | None, Sequence[Check]]] = {
        str: ((values.check_string(schema), *_format_check(schema), *enum), None, ()),
        bool: (enum, None, ()),
        int: ((check_number(schema), *enum), None, ()),
        float: ((check_number(schema), *enum), None, ()),
        list: ((), _elements(schema), (values.check_array(schema), *enum)),
        dict: ((*enum, values.check_object(schema)), _members(schema), ()),
        type(None): (enum, None, ()),
    }
    null_check = _null_check(schema)
    counts = {
        of: _COUNT_OF_ANY + count + (type_check is not _no_errors) for of, count in _COUNTS_BY_CLASS.items()
    }
    counts[str] += rule(schema.get("format", "")) is not None

    def check(value: Any, path: Path, old: Any) -> tuple[list[FieldError], int]:
        if value is None:
            field_errors, count = [*null_check(value, path)], 0
            count += not field_errors
        else:
            field_errors, count = [*type_check(value, path)], counts[value.__class__]
            count += type_check is not _no_errors and not field_errors
            for combination in combinations:
                inner, more = combination(value, path)
                field_errors += inner
                count += more
        checks_before, walk, checks_after = by_class[value.__class__]
        for value_check in checks_before:
            field_errors += value_check(value, path)
        changed = old is _NONE
        if walk is not None:
            inner, differs, more = walk(value, path, old)
            field_errors += inner
            count += more
            changed = changed or differs
        for value_check in checks_after:
            field_errors += value_check(value, path)
        return (
            []
            if field_errors and not changed and ratcheting.is_unchanged(schema, value, old)
            else field_errors
        ), count

    return check


def _no_errors(_value: Any, _path: Path) -> Iterable[FieldError]:
    return ()


# --- types and formats


def is_known_format(kind: str, form: str) -> bool:
    """Return whether the API server checks a format of a type; "" is any type."""
    if kind in ("", "string"):
        return rule(form) is not None
    return form in _NUMBER_FORMATS.get(kind, ())


def _format(schema: Schema) -> str:
    """Return the format if upstream has it for the type, else an empty string."""
    form, allowed = schema.get("format", ""), types(schema)
    if not form or (len(allowed) == 1 and allowed[0] != "string"):
        return form if form in _NUMBER_FORMATS.get("".join(allowed), ()) else ""
    return form if rule(form) is not None else ""


def _type_check(schema: Schema) -> Check:
    allowed, form = types(schema), _format(schema)
    type_checks, expected = (
        [_TYPE_CHECKS[name] for name in allowed if name in _TYPE_CHECKS],
        ",".join(allowed),
    )
    # With a format, upstream does not check that a value is a string or list, even if the format is for strings only.
    unchecked_classes = (str, list) if form and not _NUMBER_FORMATS.keys() & {*allowed} else ()

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        if any(check_type(value) for check_type in type_checks) or value.__class__ in unchecked_classes:
            return ()
        kind = _kind(value)
        if form and value.__class__ not in (str, list):
            return (_wrong_type(path, form, _GO_FORMATS.get(kind, "")),)
        return (_wrong_type(path, expected, kind),)

    return check


def _kind(value: Any) -> str:
    is_number = value.__class__ in (int, float)
    return _KINDS[as_decoded_by_go(value).__class__ if is_number else value.__class__]


def _null_check(schema: Schema) -> Check:
    allowed = types(schema)
    if schema.get("nullable") or not allowed:
        return _no_errors
    return lambda _value, path: (_wrong_type(path, ",".join(allowed), "null"),)


def _format_check(schema: Schema) -> list[Check]:
    form = _format(schema)
    holds = rule(form)
    if holds is None:
        return []
    return [lambda value, path: () if holds(value) else (_wrong_type(path, form, value),)]


def _wrong_type(path: Path, expected: str, actual_type: str) -> FieldError:
    problem = f"{values.path_text(path)} in body must be of type {expected}: {gotext.quote(actual_type)}"
    return errors.type_invalid(path, actual_type, problem)


# --- elements and members


def _elements(schema: Schema) -> _Walk | None:
    if not schema.get("items"):
        return None
    inner = _counter(schema["items"])
    keys = ratcheting.map_keys(schema)

    def check(value: Any, path: Path, old: Any) -> _Walked:
        raise_if_cancelled()
        field_errors: list[FieldError] = []
        changed, count = False, 0
        by_keys = ratcheting.elements_by_keys(old, keys) if keys and old.__class__ is list else {}
        for index, item in enumerate(value):
            old_item = by_keys.get(ratcheting.keys_of(item, keys), _NONE) if by_keys else _NONE
            item_errors, more = inner(item, path.index(index), old_item)
            field_errors += item_errors
            count += more
            changed = changed or bool(item_errors and old_item is not _NONE)
            if len(field_errors) > MAX_ERRORS:
                break
        return field_errors, changed, count

    return check


def _members(schema: Schema) -> _Walk:
    counters = {name: _counter(inner) for name, inner in sorted(properties(schema).items())}
    others = additional_properties(schema)
    other_counter = None if others is None or others is ANY_VALUE else _counter(others)
    defaulted = {name for name, inner in properties(schema).items() if inner.get("default") is not None}
    required = [name for name in schema.get("required") or () if name not in defaulted]

    def check(value: Any, path: Path, old: Any) -> _Walked:
        field_errors: list[FieldError] = []
        changed, count = False, 0
        old_members = old if old.__class__ is dict else {}
        if other_counter is not None:
            for name in sorted(value.keys() - counters.keys()):
                old_item = old_members.get(name, _NONE)
                item_errors, more = other_counter(value[name], path.child(name), old_item)
                field_errors += item_errors
                count += more
                changed = changed or bool(item_errors and old_item is not _NONE)
                if len(field_errors) > MAX_ERRORS:
                    return field_errors, changed, count
        for name in sorted(value.keys() & counters.keys()):
            old_item = old_members.get(name, _NONE)
            item_errors, more = counters[name](value[name], path.child(name), old_item)
            field_errors += item_errors
            count += more
            changed = changed or bool(item_errors and old_item is not _NONE)
            if len(field_errors) > MAX_ERRORS:
                return field_errors, changed, count
        absent = (name for name in required if name not in value)
        field_errors += [errors.required(path.child(name)) for name in islice(absent, MAX_ERRORS)]
        return field_errors, changed, count

    return check


# --- alternatives


def _all_of(schemas: list[Schema]) -> _Combination:
    each = [_counter(schema) for schema in schemas]

    def check(value: Any, path: Path) -> _Counted:
        results = [counter(value, path, _NONE) for counter in each]
        failures = [branch_errors for branch_errors, _ in results if branch_errors]
        count = sum(more for _, more in results)
        if not failures:
            return (), count
        none = ". None validated" if len(failures) == len(each) else ""
        problem = _body_error(path, f"must validate all the schemas (allOf){none}")
        return [*(error for branch_errors in failures for error in branch_errors), problem], count

    return check


def _any_of(schemas: list[Schema]) -> _Combination:
    each = [_counter(schema) for schema in schemas]

    def check(value: Any, path: Path) -> _Counted:
        failures = []
        for counter in each:
            branch_errors, count = counter(value, path, _NONE)
            if not branch_errors:
                return (), count
            failures.append((branch_errors, count))
        closest, count = _closest(failures)
        return [_body_error(path, "must validate at least one schema (anyOf)"), *closest], count

    return check


def _one_of(schemas: list[Schema]) -> _Combination:
    each = [_counter(schema) for schema in schemas]

    def check(value: Any, path: Path) -> _Counted:
        results = [counter(value, path, _NONE) for counter in each]
        counts = [count for branch_errors, count in results if not branch_errors]
        if len(counts) == 1:
            return (), counts[0]
        if counts:
            return (_body_error(path, f"{_ONE_OF}. Found {len(counts)} valid alternatives"),), 0
        closest, count = _closest(results)
        return [_body_error(path, f"{_ONE_OF}. Found none valid"), *closest], count

    return check


def _closest(failures: list[tuple[list[FieldError], int]]) -> tuple[list[FieldError], int]:
    """Return the errors and the count of the alternative with the highest count, or the first of several."""
    return max(failures, key=lambda branch: branch[1])


_ONE_OF: Final = "must validate one and only one schema (oneOf)"


def _not(schema: Schema) -> _Combination:
    inner = _counter(schema)

    def check(value: Any, path: Path) -> _Counted:
        branch_errors, _ = inner(value, path, _NONE)
        return () if branch_errors else (_body_error(path, "must not validate the schema (not)"),), 0

    return check


def _body_error(path: Path, problem: str) -> FieldError:
    """Return an error that has the field only in its message, as upstream."""
    return errors.invalid(ROOT, "", f"{gotext.quote(values.path_text(path))} {problem}")


_COMBINATIONS: Final[Mapping[str, Callable[[Any], _Combination]]] = {
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
}
