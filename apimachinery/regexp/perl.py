"""Patterns in the syntax of PCRE2, which nginx, httpd and journalctl have, as far as the engine has it.

Go's syntax is nearly a subset. What only PCRE2 has, such as backward references and lookarounds, is no mistake of the user: a pattern
with it is not supported. A mistake in both syntaxes gets the message of PCRE2.
"""

from collections.abc import Mapping
from typing import Final

from .captures import MAX_COST, CapturingPattern, capturing_pattern
from .errors import Problem, RegexpError

_MAX_COUNT: Final = 65535
_VERB: Final = "(*"
_MESSAGES: Final[Mapping[Problem, str]] = {
    Problem.MISSING_BRACKET: "missing terminating ] for character class",
    Problem.MISSING_PARENTHESIS: "missing closing parenthesis",
    Problem.UNEXPECTED_PARENTHESIS: "unmatched closing parenthesis",
    Problem.TRAILING_BACKSLASH: "\\ at end of pattern",
    Problem.MISSING_ARGUMENT: "quantifier does not follow a repeatable item",
    Problem.NESTING_DEPTH: "parentheses are too deeply nested",
    Problem.TOO_LARGE: "regular expression is too large",
}
_AT_POSITION: Final = (Problem.UNEXPECTED_PARENTHESIS, Problem.MISSING_ARGUMENT)


class PerlPatternError(ValueError):
    """A pattern is invalid; the message and the offset are those of PCRE2."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def perl_pattern(
    pattern: str, *, ignores_case: bool = False, max_cost: int = MAX_COST
) -> CapturingPattern | None:
    """Return a pattern; None for one whose syntax the engine does not have. Raise `PerlPatternError` for an invalid one."""
    try:
        return capturing_pattern(pattern, ignores_case=ignores_case, max_cost=max_cost)
    except RegexpError as error:
        problem = _problem(pattern, error)
        if problem is None:
            return None
        raise problem from error


def _problem(pattern: str, error: RegexpError) -> PerlPatternError | None:
    """Return what PCRE2 says of a pattern that Go refuses; None if it accepts it."""
    at_end = pattern.find(error.fragment, error.position) + len(error.fragment)
    if error.problem is Problem.REPEAT_COUNT:
        return _count_problem(error.fragment, at_end)
    if error.problem is Problem.CLASS_RANGE:
        if error.fragment.startswith("[:"):
            return PerlPatternError("unknown POSIX class name", at_end - len(error.fragment))
        is_range = "-" in error.fragment[1:] and not error.fragment.startswith(("\\p", "\\P"))
        return PerlPatternError("range out of order in character class", at_end - 1) if is_range else None
    message = _MESSAGES.get(error.problem)
    if message is None or (_VERB in pattern and error.problem is Problem.MISSING_ARGUMENT):
        return None
    return PerlPatternError(message, error.position if error.problem in _AT_POSITION else len(pattern))


def _count_problem(fragment: str, end: int) -> PerlPatternError | None:
    counts = [count for count in fragment.strip("{}").split(",") if count.isdecimal()]
    numbers = [int(count[:6]) for count in counts]
    if any(number > _MAX_COUNT for number in numbers):
        return PerlPatternError("number too big in {} quantifier", end)
    if len(numbers) > 1 and numbers[0] > numbers[1]:
        return PerlPatternError("numbers out of order in {} quantifier", end)
    return None
