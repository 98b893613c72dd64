"""Label selectors: requirements that must all match, compiled into one predicate."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from operator import gt, lt
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import errors, gotext, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path

Predicate: TypeAlias = Callable[[Mapping[str, str]], bool]


class Operator(Enum):
    """The operators, with upstream's names. `_SIGNS` has their signs in the text of a selector."""

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

_EXACT_MATCHES: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)

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
    """A text or object is not a valid label selector; the message is upstream's."""


class Requirement(Struct, frozen=True):
    """One requirement of a selector. `require` returns a validated one."""

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
        """The only value that the label can have, or None."""
        return self.values[0] if self.operator in _EXACT_MATCHES and len(self.values) == 1 else None

    def compile(self) -> Predicate:
        return _COMPILERS[self.operator](self.key, self.values)


def require(key: str, operator: Operator, values: Iterable[str] = (), path: Path = ROOT) -> Requirement:
    """Return a validated requirement, or raise `SelectorError`."""
    requirement = Requirement(key, operator, tuple(values))
    field_errors = check_requirement(requirement, path)
    if field_errors:
        raise SelectorError(errors.aggregate(field_errors))
    return requirement


def check_requirement(requirement: Requirement, path: Path) -> list[FieldError]:
    return [
        *check_key(requirement.key, path.child("key")),
        *_check_values(requirement, path.child("values")),
    ]


def check_key(key: str, path: Path) -> list[FieldError]:
    problems = names.check_label_key(key)
    return [errors.invalid(path, key, "; ".join(problems))] if problems else []


def _check_values(requirement: Requirement, path: Path) -> list[FieldError]:
    values = requirement.values
    problem = _check_count(requirement.operator, len(values))
    # Without values, Go prints a nil list.
    field_errors = [errors.invalid(path, values or None, problem)] if problem else []
    if requirement.operator in _BOUNDS:
        problem = "for 'Gt', 'Lt' operators, the value must be an integer"
        invalid_indexes = [index for index, value in enumerate(values) if _integer(value) is None]
        field_errors += [
            errors.invalid(path.index(index), values[index], problem) for index in invalid_indexes
        ]
    for index, value in enumerate(values):
        problems = names.check_label_value(value)
        if problems:
            field_errors.append(
                errors.invalid(path.index(index).key(requirement.key), value, "; ".join(problems))
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
    Operator.GREATER_THAN: _is_beyond(gt),
    Operator.LESS_THAN: _is_beyond(lt),
    Operator.EXISTS: _exists,
    Operator.DOES_NOT_EXIST: _does_not_exist,
}


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector, from `parse`, `from_set`, `from_label_selector`, or requirements of `require`.

    `matches(labels)` is the compiled selector. The requirements are sorted by key, so that equivalent selectors compare
    equal and have the same text.
    """

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False
    """Whether the selector matches nothing, independent of its requirements. An absent selector matches nothing."""
    matches: Predicate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.requirements, key=lambda requirement: requirement.key))
        object.__setattr__(self, "requirements", ordered)
        object.__setattr__(self, "matches", _never if self.matches_nothing else _compile(ordered))

    @property
    def empty(self) -> bool:
        """Whether the selector matches all labels."""
        return not self.requirements and not self.matches_nothing

    def requires_exact_match(self, key: str) -> str | None:
        """Return the only value that the selector allows for a key, for a lookup in an index."""
        for requirement in self.requirements:
            if requirement.key == key:
                return requirement.exact_value
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def _always(_: Mapping[str, str]) -> bool:
    return True


def _never(_: Mapping[str, str]) -> bool:
    return False


_MAX_TESTED_IN_TURN: Final = 16
"""The maximum number of requirements that are tested in turn. More are looked up by the labels of an object."""


def _compile(requirements: Sequence[Requirement]) -> Predicate:
    if len(requirements) > _MAX_TESTED_IN_TURN:
        return _compile_many(requirements)
    tests = tuple(requirement.compile() for requirement in requirements)
    if not tests:
        return _always
    if len(tests) == 1:
        return tests[0]

    def all_hold(labels: Mapping[str, str]) -> bool:
        for test in tests:  # noqa: SIM110 - all() with a generator takes twice as long
            if not test(labels):
                return False
        return True

    return all_hold


def _compile_many(requirements: Sequence[Requirement]) -> Predicate:
    """Return a predicate whose time is linear in the labels of an object, not in the requirements."""
    by_key = {
        key: tuple(requirement.compile() for requirement in _merge_requirements(key, list(group)))
        for key, group in groupby(requirements, key=lambda requirement: requirement.key)
    }
    required_keys = [key for key, tests in by_key.items() if not all(test({}) for test in tests)]

    def all_hold(labels: Mapping[str, str]) -> bool:
        if len(required_keys) > len(labels) or not all(key in labels for key in required_keys):
            return False
        return all(test(labels) for key in labels for test in by_key.get(key, ()))

    return all_hold


def _merge_requirements(key: str, requirements: Sequence[Requirement]) -> Iterator[Requirement]:
    """Yield a few requirements that are equivalent to all requirements of one label."""
    values = {
        operator: [requirement.values for requirement in requirements if requirement.operator is operator]
        for operator in Operator
    }
    if allowed := [*values[Operator.IN], *values[Operator.EQUALS], *values[Operator.DOUBLE_EQUALS]]:
        yield Requirement(key, Operator.IN, tuple(set(allowed[0]).intersection(*allowed[1:])))
    if excluded := [*values[Operator.NOT_IN], *values[Operator.NOT_EQUALS]]:
        yield Requirement(key, Operator.NOT_IN, tuple(set().union(*excluded)))
    for operator, strictest in ((Operator.GREATER_THAN, max), (Operator.LESS_THAN, min)):
        if bounds := values[operator]:
            yield Requirement(key, operator, strictest(bounds, key=lambda bound: int(bound[0])))
    for operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST):
        if values[operator]:
            yield Requirement(key, operator)


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(matches_nothing=True)


def from_set(labels: Mapping[str, str]) -> Selector:
    """Return the selector that requires each of these labels. They must be valid."""
    return Selector(tuple(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()))


_OBJECT_OPERATORS: Final[Mapping[str, Operator]] = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """Return the selector of a LabelSelector field, or raise `SelectorError`. None matches nothing, {} everything."""
    if selector is None:
        return NOTHING
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    if not labels and not expressions:
        return EVERYTHING
    exact = [require(key, Operator.EQUALS, (value,)) for key, value in labels.items()]
    return Selector((*exact, *map(_from_expression, expressions)))


def _from_expression(expression: Mapping[str, Any]) -> Requirement:
    name = expression.get("operator") or ""
    if name not in _OBJECT_OPERATORS:
        raise SelectorError(f"{gotext.quote(name)} is not a valid label selector operator")
    return require(expression.get("key") or "", _OBJECT_OPERATORS[name], expression.get("values") or ())


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """Format a LabelSelector field as Go prints it."""
    if selector is None:
        return "nil"
    match_labels = "".join(
        f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items())
    )
    match_expressions = "".join(map(_requirement, selector.get("matchExpressions") or ()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{match_labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{match_expressions}}},}}"
    )


def _requirement(expression: Mapping[str, Any]) -> str:
    values = " ".join(expression.get("values") or ())
    key, operator = expression["key"], expression["operator"]
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
