"""`[[ ]]`: conditions with patterns and regular expressions, whose words are not split."""

from collections.abc import Generator

from mockube.apimachinery.regexp.errors import RegexpError

from . import conditions
from .arithmetic import evaluate
from .messages import message_of
from .parameters import ExpressionVariables, element
from .patterns import matches, parse_pattern
from .posix_matches import count_search, find_matches
from .process import Effect
from .regular_expressions import BadRegularExpression, extended_expression
from .state import OPTION_NAMES, DiscardError, Shell
from .syntax import ConditionTree, Conjunction, Negation, OperatorCondition, Word
from .variables import ShellVariable
from .words import expand_text, pattern_pieces

Evaluation = Generator[Effect, bytes | None, bool]


def evaluate_condition(shell: Shell, condition: ConditionTree) -> Evaluation:
    match condition:
        case Negation(condition=inner):
            return not (yield from evaluate_condition(shell, inner))
        case Conjunction(left=left, right=right, is_and=is_and):
            value = yield from evaluate_condition(shell, left)
            return value if value is not is_and else (yield from evaluate_condition(shell, right))
        case OperatorCondition(operator=operator, operands=(operand,)):
            text = yield from expand_text(shell, operand)
            return _unary(shell, operator, text)
        case OperatorCondition(operator=operator, operands=operands):
            left_word, right_word = operands
            return (yield from _binary(shell, operator, left_word, right_word))


def _unary(shell: Shell, operator: str, text: str) -> bool:
    if operator == "-v":
        name, bracket, index = text.partition("[")
        if bracket:
            return element(shell, name, index.removesuffix("]")) is not None
        return shell.parameter(name) is not None
    if operator == "-o":
        if text not in OPTION_NAMES:
            raise conditions.BadCondition(f"{text}: invalid option name")
        return text in shell.options
    return conditions.unary(shell.process, operator, text)


def _binary(shell: Shell, operator: str, left_word: Word, right_word: Word) -> Evaluation:
    left = yield from expand_text(shell, left_word)
    if operator in ("=", "==", "!="):
        pieces = yield from pattern_pieces(shell, right_word)
        if "nocasematch" in shell.features:
            left, pieces = left.lower(), [(text.lower(), quoted) for text, quoted in pieces]
        pattern = yield from parse_pattern(pieces)
        return (yield from matches(left, pattern)) is not (operator == "!=")
    if operator == "=~":
        return (yield from _matches_expression(shell, left, right_word))
    right = yield from expand_text(shell, right_word)
    if operator in ("-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
        variables = ExpressionVariables(shell)
        try:
            left, right = str(evaluate(left, variables)), str(evaluate(right, variables))
        except DiscardError as error:
            yield from shell.report(f"[[: {message_of(error, is_bash=shell.is_bash)}")
            return False
    return conditions.binary(shell.process, left, operator, right)


def _matches_expression(shell: Shell, text: str, word: Word) -> Evaluation:
    pieces = yield from pattern_pieces(shell, word)
    source = "".join(_literal(piece) if quoted else piece for piece, quoted in pieces)
    try:
        expression = extended_expression(source)
        if "nocasematch" in shell.features:
            expression = f"(?i:{expression})"
        yield from count_search(expression, text)
        match = next(find_matches(expression, text, 1), None)
    except (BadRegularExpression, RegexpError) as error:
        raise conditions.BadCondition(f"{source}: {error}") from error
    groups: dict[int | str, str] = {
        index: text[max(start, 0) : max(end, 0)] for index, (start, end) in enumerate(match or ())
    }
    shell.variables.put("BASH_REMATCH", ShellVariable(elements=groups))
    return match is not None


def _literal(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\^$.|?*+()[]{}" else char for char in text)
