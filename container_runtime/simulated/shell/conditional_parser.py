"""The parser of `[[ ]]`."""

import re
from typing import Final

from .lexer import Lexer
from .syntax import Command, Conditional, ConditionTree, Conjunction, Negation, OperatorCondition, Text, Word

_BINARY: Final = re.compile(r"=~|==|=|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)(?=\s)")
_UNARY: Final = re.compile(r"-[a-zA-Z](?=\s)")


def parse_conditional(lexer: Lexer) -> Command:
    line = lexer.line
    condition = _disjunction(lexer)
    lexer.expect("]]")
    return Conditional(condition, line)


def _disjunction(lexer: Lexer) -> ConditionTree:
    lexer.enter()
    condition = _conjunction(lexer)
    while _accept_after_lines(lexer, "||"):
        condition = Conjunction(condition, _conjunction(lexer), is_and=False)
    lexer.leave()
    return condition


def _conjunction(lexer: Lexer) -> ConditionTree:
    condition = _negation(lexer)
    while _accept_after_lines(lexer, "&&"):
        condition = Conjunction(condition, _negation(lexer), is_and=True)
    return condition


def _accept_after_lines(lexer: Lexer, operator: str) -> bool:
    lexer.skip_lines()
    return lexer.accept(operator)


def _negation(lexer: Lexer) -> ConditionTree:
    lexer.skip_lines()
    if lexer.keyword() == "!":
        lexer.position += 1
        return Negation(_negation(lexer))
    if lexer.accept("("):
        condition = _disjunction(lexer)
        if not lexer.accept(")"):
            raise lexer.unexpected_token(' (expecting ")")')
        return condition
    if lexer.keyword() == "]]":
        raise lexer.unexpected_token()
    unary = _UNARY.match(lexer.text, lexer.position)
    if unary:
        start = lexer.position
        lexer.position = unary.end()
        lexer.skip_blanks()
        if lexer.keyword() != "]]" and not lexer.operator() and not _BINARY.match(lexer.text, lexer.position):
            return OperatorCondition(unary[0], (lexer.next_word(),))
        lexer.position = start
    left = lexer.next_word()
    lexer.skip_blanks()
    binary = _BINARY.match(lexer.text, lexer.position)
    if binary is None:
        return OperatorCondition("-n", (left,))
    lexer.position = binary.end()
    lexer.skip_blanks()
    right = _regular_expression(lexer) if binary[0] == "=~" else lexer.next_word()
    return OperatorCondition(binary[0], (left, right))


def _regular_expression(lexer: Lexer) -> Word:
    """Parse the word behind `=~`, in which parentheses and bars are ordinary characters."""
    parts: list[Word] = []
    depth = 0
    while lexer.position < len(lexer.text):
        char = lexer.peek()
        if char in "()|<>&;":
            depth += (char == "(") - (char == ")")
            if depth < 0 or (char in "&;" and not depth):
                break
            parts.append((Text(char, quoted=False),))
            lexer.position += 1
        elif char in " \t\n":
            if not depth:
                break
            parts.append((Text(char, quoted=False),))
            lexer.position += 1
        else:
            parts.append(lexer.word())
    return tuple(part for word in parts for part in word)
