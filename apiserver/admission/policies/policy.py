"""One compiled policy, and what its expressions decide about a write."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.authz.chain import aggregate
from mockube.apiserver.cel.environment import Compiled
from mockube.apiserver.cel.program import PER_CALL_LIMIT
from mockube.apiserver.cel.types import Type
from mockube.apiserver.cel.values import CelError, CostExceeded
from mockube.apiserver.kinds.admissionregistration.expressions import (
    BOOL,
    TEXT,
    TEXT_OR_NULL,
    BadExpression,
    Compiler,
    Has,
    Variables,
)

BUDGET: Final = 10_000_000
"""What all expressions of a policy may cost for one write."""
_CONDITIONS_BUDGET: Final = BUDGET // 4
_OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_MAX_MESSAGE: Final = 5 * 1024
_MAX_ANNOTATION: Final = 10 * 1024
INVALID: Final = "Invalid"


class OutOfBudget(Exception):
    """The expressions of a policy cost too much together."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


@dataclass(frozen=True, slots=True)
class Expression:
    """One expression of a policy; a text that does not compile is an error whenever it is evaluated."""

    text: str
    compiled: Compiled | BadExpression


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an expression returned, or why it did not."""

    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a policy refuses a write. `place` is that of the validation among the others."""

    message: str
    reason: str = ""
    place: int = 0
    is_always: bool = False
    """Refused whatever the actions of the binding."""


@dataclass(slots=True)
class PolicyDecision:
    """What a policy says of a write."""

    denials: list[Denial] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)


class _Evaluation:
    """The expressions of one sort, evaluated one after another within a budget."""

    def __init__(self, policy: "Policy", activation: Mapping[str, Any], budget: int) -> None:
        self._activation = dict(activation)
        self.budget = budget
        self._variables = Variables(policy.variables, self._activation)
        self._activation["variables"] = self._variables

    def all(self, expressions: Sequence[Expression | None]) -> list[Outcome]:
        return [self._one(expression) for expression in expressions]

    def _one(self, expression: Expression | None) -> Outcome:
        if expression is None:
            return Outcome()
        if isinstance(expression.compiled, BadExpression):
            return Outcome(error=f"compilation error: {expression.compiled}")
        value, error = None, None
        try:
            value, cost = expression.compiled.program.evaluate(self._activation)
        except CelError as failed:
            error, cost = str(failed), failed.cost
        except CostExceeded as failed:
            error, cost = str(failed), PER_CALL_LIMIT
        self.budget -= self._variables.take_cost() + cost
        if self.budget < 0:
            raise OutOfBudget
        if error is not None:
            return Outcome(error=f"expression '{expression.text}' resulted in error: {error}")
        return Outcome(value)


class Policy:
    """A policy with its expressions compiled."""

    def __init__(self, tree: ReadOnlyTree) -> None:
        self.tree = tree
        self.name = meta.name(tree)
        self.spec: ReadOnlyTree = tree["spec"]
        self.fails_open = self.spec.get("failurePolicy") == "Ignore"
        has = Has(params=self.spec.get("paramKind") is not None)
        plain = Has(params=has.params, authorizer=False)
        self._compiler = Compiler(has_variables=True)
        for variable in self.spec.get("variables") or ():
            self._add_variable(variable, has)
        self.variables = self._compiler.variables
        self._conditions = [
            self._compile(one["expression"], BOOL, has) for one in self.spec.get("matchConditions") or ()
        ]
        self._validations: Sequence[ReadOnlyTree] = self.spec.get("validations") or ()
        self._rules = [self._compile(one["expression"], BOOL, has) for one in self._validations]
        self._messages = [
            self._compile(one["messageExpression"], TEXT, plain) if one.get("messageExpression") else None
            for one in self._validations
        ]
        self._audits: Sequence[ReadOnlyTree] = self.spec.get("auditAnnotations") or ()
        self._values = [self._compile(one["valueExpression"], TEXT_OR_NULL, has) for one in self._audits]

    def _compile(self, text: str, returns: Sequence[Type], has: Has) -> Expression:
        try:
            return Expression(text, self._compiler.compile(text, returns, has))
        except BadExpression as error:
            return Expression(text, error)

    def _add_variable(self, variable: ReadOnlyTree, has: Has) -> None:
        try:
            self._compiler.add_variable(variable["name"], variable["expression"], has)
        except BadExpression:
            return  # whoever uses it finds out

    def judge(self, activation: Mapping[str, Any], authorizers: Mapping[str, Any]) -> PolicyDecision:
        """Evaluate a policy for a write, with one parameter."""
        everything = {**activation, **authorizers}
        verdict = PolicyDecision()
        try:
            if not self._is_concerned(verdict, everything):
                return verdict
            evaluation = _Evaluation(self, everything, BUDGET)
            outcomes = evaluation.all(self._rules)
            verdict.denials += self._denials(outcomes, activation, evaluation.budget)
            values = _Evaluation(self, activation, BUDGET).all(self._values)
            self._annotate(verdict, values)
        except OutOfBudget as error:
            return PolicyDecision(denials=self._failed(str(error)))
        return verdict

    def _failed(self, problem: str, place: int = 0) -> list[Denial]:
        return [] if self.fails_open else [Denial(problem, place=place)]

    def _is_concerned(self, verdict: PolicyDecision, everything: Mapping[str, Any]) -> bool:
        """Whether all matchConditions hold; one that does not excuses errors of others."""
        if not self._conditions:
            return True
        without_namespace = {**everything, "namespaceObject": None}
        outcomes = _Evaluation(self, without_namespace, _CONDITIONS_BUDGET).all(self._conditions)
        if any(outcome.value is False for outcome in outcomes):
            return False
        problems = [outcome.error for outcome in outcomes if outcome.error is not None]
        if problems:
            verdict.denials += self._failed(aggregate(problems))
        return not problems

    def _denials(
        self, outcomes: Sequence[Outcome], activation: Mapping[str, Any], budget: int
    ) -> Iterator[Denial]:
        messages: Sequence[Outcome] = ()
        problem = None
        try:
            messages = _Evaluation(self, activation, budget).all(self._messages)
        except OutOfBudget as error:
            problem = f"failed messageExpression: {error}"
        for place, outcome in enumerate(outcomes):
            wrong = outcome.error if outcome.error is not None else problem
            if wrong is not None:
                yield from self._failed(wrong, place)
            elif outcome.value is not True:
                validation = self._validations[place]
                said = _said(validation, messages[place])
                yield Denial(said, validation.get("reason") or INVALID, place)

    def _annotate(self, verdict: PolicyDecision, outcomes: Sequence[Outcome]) -> None:
        for audit, outcome in zip(self._audits, outcomes, strict=True):
            if outcome.error is not None:
                if not self.fails_open:
                    verdict.denials.append(Denial(outcome.error, is_always=True))
            elif isinstance(outcome.value, str) and outcome.value.strip():
                verdict.annotations.append((audit["key"], _cut(outcome.value.strip())))


def _cut(text: str) -> str:
    return text.encode()[:_MAX_ANNOTATION].decode(errors="replace")


def _said(validation: ReadOnlyTree, message: Outcome) -> str:
    """The message of a validation that failed: computed, written, or its expression."""
    text = message.value.strip() if isinstance(message.value, str) else ""
    if len(text.encode()) > _MAX_MESSAGE or "\n" in text:
        text = ""
    written: str = (validation.get("message") or "").strip()
    return text or written or f"failed expression: {validation['expression'].strip()}"
