"""Label selectors: requirements that must all hold, compiled once into one function."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.labels.requirement import Operator, Predicate, Requirement, SelectorError, require


@dataclass(frozen=True, slots=True)
class Selector:
    """Made by `parse`, `from_set` or `from_label_selector`, or of requirements from `require`.

    `matches(labels)` is the compiled selector. Requirements stand in the order of their keys, so that equal selectors
    are equal and print alike.
    """

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False
    """Matches no labels at all, whatever the requirements: what an absent selector means."""
    matches: Predicate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.requirements, key=lambda requirement: requirement.key))
        object.__setattr__(self, "requirements", ordered)
        object.__setattr__(self, "matches", _never if self.matches_nothing else _compile(ordered))

    @property
    def empty(self) -> bool:
        """It matches all labels."""
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


_MANY: Final = 16
"""Requirements from which on they are looked up by the labels that an object has, instead of tested one by one."""


def _compile(requirements: Sequence[Requirement]) -> Predicate:
    if len(requirements) > _MANY:
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
    """A test whose time grows with the labels of an object, and not with the requirements."""
    by_key = {
        key: tuple(requirement.compile() for requirement in _merge_requirements(key, list(group)))
        for key, group in groupby(requirements, key=lambda requirement: requirement.key)
    }
    needed = [key for key, tests in by_key.items() if not all(test({}) for test in tests)]

    def all_hold(labels: Mapping[str, str]) -> bool:
        if len(needed) > len(labels) or not all(key in labels for key in needed):
            return False
        return all(test(labels) for key in labels for test in by_key.get(key, ()))

    return all_hold


def _merge_requirements(key: str, requirements: Sequence[Requirement]) -> Iterator[Requirement]:
    """Return a few requirements that are equivalent to all requirements of one label."""
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
    """Exactly these labels; they are valid already, being an object's own."""
    return Selector(tuple(Requirement(key, Operator.EQUALS, (value,)) for key, value in labels.items()))


_OBJECT_OPERATORS: Final[Mapping[str, Operator]] = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """The selector in an object's field, or `SelectorError`. Absent it selects nothing, empty everything."""
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
    """The selector in an object's field as Go prints it."""
    if selector is None:
        return "nil"
    chosen = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    demands = "".join(map(_requirement, selector.get("matchExpressions") or ()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{chosen}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{demands}}},}}"
    )


def _requirement(expression: Mapping[str, Any]) -> str:
    values = " ".join(expression.get("values") or ())
    key, operator = expression["key"], expression["operator"]
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
