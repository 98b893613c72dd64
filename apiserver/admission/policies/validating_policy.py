"""A compiled ValidatingAdmissionPolicy, and its decision about a write."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import gotext
from mockube.apimachinery.admission_expressions import BOOL, TEXT, TEXT_OR_NULL, OptionalVariables
from mockube.apimachinery.tree import ReadOnlyTree

from .definition import PolicyDefinition
from .evaluation import Evaluation, EvaluationResult, OutOfBudget
from .match_conditions import ConditionsFailed

_MAX_MESSAGE: Final = 5 * 1024
_MAX_ANNOTATION: Final = 10 * 1024
"""Upstream cuts both: a message (apiserver/pkg/apis/cel/config.go), and the value of an audit annotation (validating/dispatcher.go)."""
INVALID: Final = "Invalid"


class Denial(Struct, frozen=True):
    """The reason for which a policy refuses a write. `index` is that of the validation in the policy."""

    message: str
    reason: str = ""
    index: int = 0
    is_always: bool = False
    """Whether the write is rejected whatever the actions of the binding are."""


class PolicyDecision(Struct):
    """The result of a policy for a write."""

    denials: list[Denial] = field(default_factory=list)
    annotations: list[tuple[str, str]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Failures that failurePolicy Ignore suppresses."""


class ValidatingPolicy(PolicyDefinition):
    """A ValidatingAdmissionPolicy with its expressions compiled."""

    def __init__(self, tree: ReadOnlyTree) -> None:
        super().__init__(tree)
        optional_variables, plain = (
            self.optional_variables,
            OptionalVariables(params=self.optional_variables.params, authorizer=False),
        )
        self._validations: Sequence[ReadOnlyTree] = self.spec.get("validations") or ()
        self._rules = [
            self.compile(validation["expression"], BOOL, optional_variables)
            for validation in self._validations
        ]
        self._messages = [
            self.compile(validation["messageExpression"], TEXT, plain)
            if validation.get("messageExpression")
            else None
            for validation in self._validations
        ]
        self._audits: Sequence[ReadOnlyTree] = self.spec.get("auditAnnotations") or ()
        self._values = [
            self.compile(audit["valueExpression"], TEXT_OR_NULL, optional_variables) for audit in self._audits
        ]

    def evaluate(self, activation: Mapping[str, Any], authorizers: Mapping[str, Any]) -> PolicyDecision:
        """Evaluate a policy for a write, with one parameter."""
        full_activation = {**activation, **authorizers}
        decision = PolicyDecision()
        try:
            if not self.conditions.hold(full_activation):
                return decision
            evaluation = Evaluation(full_activation, self.variables)
            outcomes = evaluation.all(self._rules)
            self._judge_outcomes(decision, outcomes, activation, evaluation.budget)
            values = Evaluation(activation, self.variables).all(self._values)
            self._annotate(decision, values)
        except (ConditionsFailed, OutOfBudget) as error:
            decision = PolicyDecision()
            self._fail(decision, str(error))
        return decision

    def _fail(self, decision: PolicyDecision, problem: str, index: int = 0) -> None:
        if self.fails_open:
            decision.ignored.append(problem)
        else:
            decision.denials.append(Denial(problem, index=index))

    def _judge_outcomes(
        self,
        decision: PolicyDecision,
        outcomes: Sequence[EvaluationResult],
        activation: Mapping[str, Any],
        budget: int,
    ) -> None:
        messages: Sequence[EvaluationResult] = ()
        problem = None
        try:
            messages = Evaluation(activation, self.variables, budget).all(self._messages)
        except OutOfBudget as error:
            problem = f"failed messageExpression: {error}"
        for index, outcome in enumerate(outcomes):
            failure = outcome.error if outcome.error is not None else problem
            if failure is not None:
                self._fail(decision, failure, index)
            elif outcome.value is not True:
                validation = self._validations[index]
                message = _failure_message(validation, messages[index])
                decision.denials.append(Denial(message, validation.get("reason") or INVALID, index))

    def _annotate(self, decision: PolicyDecision, outcomes: Sequence[EvaluationResult]) -> None:
        for audit, outcome in zip(self._audits, outcomes, strict=True):
            if outcome.error is not None:
                if not self.fails_open:
                    decision.denials.append(Denial(outcome.error, is_always=True))
            elif isinstance(outcome.value, str) and outcome.value.strip():
                decision.annotations.append(
                    (audit["key"], gotext.decode_utf8(outcome.value.strip().encode()[:_MAX_ANNOTATION]))
                )


def _failure_message(validation: ReadOnlyTree, message: EvaluationResult) -> str:
    """Return the message of a failed validation: messageExpression, message, or its expression."""
    text = message.value.strip() if isinstance(message.value, str) else ""
    if len(text.encode()) > _MAX_MESSAGE or "\n" in text:
        text = ""
    written: str = (validation.get("message") or "").strip()
    return text or written or f"failed expression: {validation['expression'].strip()}"
