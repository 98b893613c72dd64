"""The expressions of policies and of match conditions, evaluated for one write within a budget."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.admission_expressions import BadExpression, Compiler, OptionalVariables, Variables
from mockube.apimachinery.cel.environment import CompiledExpression
from mockube.apimachinery.cel.program import PER_CALL_LIMIT
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.cel.values import CelError, CostExceeded

BUDGET: Final = 10_000_000
"""The cost limit of all expressions of a policy for one write."""
_OUT_OF_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class OutOfBudget(Exception):
    """The expressions of a policy cost too much together."""

    def __init__(self) -> None:
        super().__init__(_OUT_OF_BUDGET)


class Expression(Struct, frozen=True):
    """One expression of a policy; a text that does not compile is an error whenever it is evaluated."""

    text: str
    compiled: CompiledExpression | BadExpression


class EvaluationResult(Struct, frozen=True):
    """The value of an expression, or its error."""

    value: Any = None
    error: str | None = None


class Evaluation:
    """Evaluates expressions one after another within a budget."""

    def __init__(
        self,
        activation: Mapping[str, Any],
        variables: Mapping[str, CompiledExpression | BadExpression],
        budget: int = BUDGET,
    ) -> None:
        self._activation = dict(activation)
        self.budget = budget
        self._variables = Variables(variables, self._activation)
        self._activation["variables"] = self._variables

    def all(self, expressions: Sequence[Expression | None]) -> list[EvaluationResult]:
        return [self._evaluate(expression) for expression in expressions]

    def _evaluate(self, expression: Expression | None) -> EvaluationResult:
        if expression is None:
            return EvaluationResult()
        if isinstance(expression.compiled, BadExpression):
            return EvaluationResult(error=f"compilation error: {expression.compiled}")
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
            return EvaluationResult(error=f"expression '{expression.text}' resulted in error: {error}")
        return EvaluationResult(value)


def compile_expression(
    compiler: Compiler, text: str, returns: Sequence[Type], optional_variables: OptionalVariables
) -> Expression:
    try:
        return Expression(text, compiler.compile(text, returns, optional_variables))
    except BadExpression as error:
        return Expression(text, error)
