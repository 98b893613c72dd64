"""Label selectors: requirements that must all hold, compiled once into one function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from apimachinery import gotext
from apimachinery.labels.requirement import Operator, Predicate, Requirement, SelectorError, require


@dataclass(frozen=True, slots=True)
class Selector:
    """Made by `parse`, `from_set` or `from_label_selector`, or of requirements from `require`.

    `matches(labels)` is the compiled selector. Requirements stand in the order of their keys, so that equal selectors
    are equal and print alike.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    """Matches no labels at all, whatever the requirements: what an absent selector means."""
    matches: Predicate = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.requirements, key=lambda requirement: requirement.key))
        object.__setattr__(self, "requirements", ordered)
        object.__setattr__(self, "matches", _never if self.nothing else _compile(ordered))

    @property
    def empty(self) -> bool:
        """It restricts nothing, so there is no need to ask it."""
        return not self.requirements and not self.nothing

    def requires_exact_match(self, key: str) -> str | None:
        """The one value that the selector allows for a key, if it allows one only: what an index is asked for."""
        for requirement in self.requirements:
            if requirement.key == key:
                exact = requirement.operator in _EXACT_MATCHES and len(requirement.values) == 1
                return requirement.values[0] if exact else None
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_EXACT_MATCHES: Final = (Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN)


def _always(_: Mapping[str, str]) -> bool:
    return True


def _never(_: Mapping[str, str]) -> bool:
    return False


def _compile(requirements: Sequence[Requirement]) -> Predicate:
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


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


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
