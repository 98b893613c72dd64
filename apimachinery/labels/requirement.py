"""One requirement of a label selector: what is valid, how it prints, and the test it compiles to."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import errors, gotext, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path

Predicate: TypeAlias = Callable[[Mapping[str, str]], bool]


class Operator(Enum):
    """The value is upstream's name of the operator; what stands in a selector's text is in `_SIGNS`."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


_SETS: Final = (Operator.IN, Operator.NOT_IN)
_EXACT: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS)
_BOUNDS: Final = (Operator.GREATER_THAN, Operator.LESS_THAN)
_UNARY: Final = (Operator.EXISTS, Operator.DOES_NOT_EXIST)

_SIGNS: Final[Mapping[Operator, str]] = {
    Operator.IN: " in ",
    Operator.NOT_IN: " notin ",
    Operator.EQUALS: "=",
    Operator.DOUBLE_EQUALS: "==",
    Operator.NOT_EQUALS: "!=",
    Operator.GREATER_THAN: ">",
    Operator.LESS_THAN: "<",
}


class SelectorError(ValueError):
    """Something is not a label selector; the message is upstream's."""


_EXACT_MATCHES: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


class Requirement(Struct, frozen=True):
    """Made by `require`, which checks it."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator is Operator.EXISTS:
            return self.key
        values = ",".join(sorted(self.values))
        return f"{self.key}{_SIGNS[self.operator]}" + (f"({values})" if self.operator in _SETS else values)

    @property
    def exact_value(self) -> str | None:
        """The one value that the label may have, if there is only one."""
        return self.values[0] if self.operator in _EXACT_MATCHES and len(self.values) == 1 else None

    def compile(self) -> Predicate:
        return _COMPILERS[self.operator](self.key, self.values)


def require(key: str, operator: Operator, values: Iterable[str] = (), path: Path = ROOT) -> Requirement:
    """A requirement that is valid, or `SelectorError`."""
    requirement = Requirement(key, operator, tuple(values))
    field_errors = [*check_key(key, path.child("key")), *_check_values(requirement, path.child("values"))]
    if field_errors:
        raise SelectorError(errors.aggregate(field_errors))
    return requirement


def check_key(key: str, path: Path) -> list[FieldError]:
    problems = names.check_label_key(key)
    return [errors.invalid(path, key, "; ".join(problems))] if problems else []


def _check_values(requirement: Requirement, path: Path) -> list[FieldError]:
    values = requirement.values
    problem = _check_count(requirement.operator, len(values))
    # Go has no list where nothing was given, and prints that.
    field_errors = [errors.invalid(path, values or None, problem)] if problem else []
    if requirement.operator in _BOUNDS:
        problem = "for 'Gt', 'Lt' operators, the value must be an integer"
        wrong = [at for at, value in enumerate(values) if _integer(value) is None]
        field_errors += [errors.invalid(path.index(at), values[at], problem) for at in wrong]
    for at, value in enumerate(values):
        problems = names.check_label_value(value)
        if problems:
            field_errors.append(
                errors.invalid(path.index(at).key(requirement.key), value, "; ".join(problems))
            )
    return field_errors


def _check_count(operator: Operator, count: int) -> str:
    if operator in _SETS and count == 0:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in _EXACT and count != 1:
        return "exact-match compatibility requires one single value"
    if operator in _UNARY and count != 0:
        return "values set must be empty for exists and does not exist"
    if operator in _BOUNDS and count != 1:
        return "for 'Gt', 'Lt' operators, exactly one value is required"
    return ""


def _integer(value: str) -> int | None:
    try:
        return gotext.parse_int(value)
    except gotext.NumberError:
        return None


# --- what each operator compiles to


def _is_one_of(key: str, values: Sequence[str]) -> Predicate:
    allowed = frozenset(values)
    return lambda labels: labels.get(key) in allowed


def _is_none_of(key: str, values: Sequence[str]) -> Predicate:
    refused = frozenset(values)
    return lambda labels: labels.get(key) not in refused


def _equals(key: str, values: Sequence[str]) -> Predicate:
    (value,) = values
    return lambda labels: labels.get(key) == value


def _exists(key: str, _: Sequence[str]) -> Predicate:
    return lambda labels: key in labels


def _does_not_exist(key: str, _: Sequence[str]) -> Predicate:
    return lambda labels: key not in labels


def _is_beyond(relation: Callable[[int, int], bool]) -> Callable[[str, Sequence[str]], Predicate]:
    def compiler(key: str, values: Sequence[str]) -> Predicate:
        bound = gotext.parse_int(values[0])

        def test(labels: Mapping[str, str]) -> bool:
            value = _integer(labels.get(key, ""))
            return value is not None and relation(value, bound)

        return test

    return compiler


_COMPILERS: Final[Mapping[Operator, Callable[[str, Sequence[str]], Predicate]]] = {
    Operator.IN: _is_one_of,
    Operator.NOT_IN: _is_none_of,
    Operator.EQUALS: _equals,
    Operator.DOUBLE_EQUALS: _equals,
    Operator.NOT_EQUALS: _is_none_of,
    Operator.GREATER_THAN: _is_beyond(operator.gt),
    Operator.LESS_THAN: _is_beyond(operator.lt),
    Operator.EXISTS: _exists,
    Operator.DOES_NOT_EXIST: _does_not_exist,
}
