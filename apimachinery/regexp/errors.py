"""The errors of Go's package regexp/syntax."""

from enum import StrEnum


class Problem(StrEnum):
    """The error codes of a pattern, with Go's texts."""

    CLASS_RANGE = "invalid character class range"
    ESCAPE = "invalid escape sequence"
    NAMED_CAPTURE = "invalid named capture"
    PERL_OPERATOR = "invalid or unsupported Perl syntax"
    REPEAT_OPERATOR = "invalid nested repetition operator"
    REPEAT_COUNT = "invalid repeat count"
    MISSING_BRACKET = "missing closing ]"
    MISSING_PARENTHESIS = "missing closing )"
    MISSING_ARGUMENT = "missing argument to repetition operator"
    TRAILING_BACKSLASH = "trailing backslash at end of expression"
    UNEXPECTED_PARENTHESIS = "unexpected )"
    NESTING_DEPTH = "expression nests too deeply"
    TOO_LARGE = "expression too large"


class RegexpError(ValueError):
    """A pattern is invalid; the message is that of Go's `regexp.Compile`."""

    def __init__(self, problem: Problem, fragment: str) -> None:
        super().__init__(f"error parsing regexp: {problem.value}: `{fragment}`")
        self.problem = problem
        self.fragment = fragment
        self.position = 0
        """Where the part of the pattern begins that was read last."""
