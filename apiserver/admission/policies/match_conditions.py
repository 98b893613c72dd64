"""The matchConditions of policies and of webhooks: expressions that limit the writes to which they apply."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from mockube.apimachinery.admission_expressions import BOOL, Compiler, OptionalVariables
from mockube.apiserver.authz.chain import aggregate

from .evaluation import BUDGET, Evaluation, OutOfBudget, compile_expression

_BUDGET: Final = BUDGET // 4
"""The cost limit of all conditions for one write."""
_MAX_COMPILED: Final = 1024
"""The webhooks whose conditions are cached; those of another one are compiled again for each write."""


class ConditionsFailed(Exception):
    """matchConditions are undecided: some failed, and none is false."""


class MatchConditions:
    """The matchConditions of a policy or of a webhook, compiled."""

    def __init__(
        self, expressions: Sequence[str], compiler: Compiler, optional_variables: OptionalVariables
    ) -> None:
        self._expressions = [
            compile_expression(compiler, text, BOOL, optional_variables) for text in expressions
        ]
        self._variables = compiler.variables

    def __bool__(self) -> bool:
        return bool(self._expressions)

    def hold(self, activation: Mapping[str, Any]) -> bool:
        """Return whether all are true; raise ConditionsFailed if some fail and none is false."""
        if not self._expressions:
            return True
        without_namespace = {**activation, "namespaceObject": None}
        try:
            outcomes = Evaluation(without_namespace, self._variables, _BUDGET).all(self._expressions)
        except OutOfBudget as error:
            raise ConditionsFailed(str(error)) from error
        if any(outcome.value is False for outcome in outcomes):
            return False
        problems = [outcome.error for outcome in outcomes if outcome.error is not None]
        if problems:
            raise ConditionsFailed(aggregate(problems))
        return True


@lru_cache(_MAX_COMPILED)
def webhook_conditions(*expressions: str) -> MatchConditions:
    """Return the conditions of a webhook, without variables and parameters; the same texts are compiled once."""
    return MatchConditions(expressions, Compiler(), OptionalVariables())
