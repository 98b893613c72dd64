"""The parser of simple commands: words, assignments and redirections."""

import re
from collections.abc import Sequence
from typing import Final

from .lexer import Lexer
from .scanner import BREAKS
from .syntax import (
    Assignment,
    Command,
    Part,
    Redirect,
    ShellSyntaxError,
    SimpleCommand,
    Text,
    Word,
    indexed_word,
)

_REDIRECT: Final = re.compile(
    r"([0-9]*|\{[A-Za-z_][A-Za-z0-9_]*\})(<<<|<<-|<<|<>|>>|>&|<&|>\||&>>|&>|[<>](?!\())"
)
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)")
_DECLARATIONS: Final = frozenset(["declare", "typeset", "local", "export", "readonly"])


def parse_simple(lexer: Lexer) -> Command:
    assignments: list[Assignment] = []
    words: list[Word | Assignment] = []
    redirects: list[Redirect] = []
    lexer.skip_blanks()
    line = lexer.line
    declares = False
    while True:
        # For bash, the line of a command is that of the token behind its first word.
        begins = lexer.is_bash and bool(words) and not (assignments or redirects)
        line = lexer.line if begins and len(words) == 2 else line
        lexer.skip_blanks()
        line = lexer.line if begins and len(words) == 1 else line
        redirect = _redirect(lexer)
        if redirect is not None:
            redirects.append(redirect)
            continue
        if lexer.is_at_end() or (lexer.operator() and lexer.peek(2) != "<("):
            break
        assignment = _assignment(lexer) if declares or not words else None
        if assignment is None:
            start = lexer.position
            words.append(lexer.next_word())
            declares = declares or lexer.text[start : lexer.position] in _DECLARATIONS
        elif words:
            words.append(assignment)
        else:
            assignments.append(assignment)
    if not (assignments or words or redirects):
        raise lexer.unexpected_token()
    if lexer.operator() == "(":
        if len(words) == 1 and not (assignments or redirects):  # the beginning of a function
            lexer.position += 1
            raise lexer.unexpected_token(' (expecting ")")', needs_word=True)
        raise lexer.unexpected_token()
    return SimpleCommand(tuple(assignments), tuple(words), tuple(redirects), line)


def _assignment(lexer: Lexer) -> Assignment | None:
    start = lexer.position
    match = _ASSIGNMENT.match(lexer.text, start)
    if match is None:
        return None
    index = None
    operator = match[2]
    lexer.position = match.end()
    if operator == "[":
        lexer.position -= 1
        try:
            index = lexer.index()
        except ShellSyntaxError:
            lexer.position = start
            return None
        operator = "+=" if lexer.peek(2) == "+=" else lexer.peek()
        if operator not in ("=", "+="):
            lexer.position = start
            return None
        lexer.position += len(operator)
    appends = operator == "+="
    if lexer.peek() == "(" and index is None:
        lexer.position += 1
        elements = _elements(lexer)
        if lexer.position >= len(lexer.text) or lexer.peek() in BREAKS:
            return Assignment(name=match[1], elements=elements, appends=appends)
        value = (*_text_of(elements), *lexer.word(in_assignment=True))
        return Assignment(name=match[1], value=value, appends=appends)
    return Assignment(name=match[1], index=index, value=lexer.word(in_assignment=True), appends=appends)


def _elements(lexer: Lexer) -> Sequence[tuple[Word | None, Word]]:
    elements: list[tuple[Word | None, Word]] = []
    begin = lexer.position
    while True:
        lexer.skip_lines()
        if lexer.accept(")"):
            return tuple(elements)
        if lexer.is_at_end():
            raise lexer.unterminated(begin, ")", 'end of file unexpected (expecting ")")')
        index = None
        start = lexer.position
        if lexer.peek() == "[":
            index = lexer.index()
            if lexer.peek() == "=":
                lexer.position += 1
            else:
                lexer.position, index = start, None
        elements.append((index, lexer.next_word() if index is None else lexer.word()))


def _text_of(elements: Sequence[tuple[Word | None, Word]]) -> Word:
    """Return the elements of an array as the text that they are for bash with something behind the parenthesis."""
    parts: list[Part] = [Text("(", quoted=True)]
    for number, (index, word) in enumerate(elements):
        parts += [Text(" ", quoted=True)] if number else ()
        parts += word if index is None else indexed_word(index, word)
    return (*parts, Text(")", quoted=True))


def parse_redirects(lexer: Lexer) -> Sequence[Redirect]:
    redirects = []
    while (redirect := _redirect(lexer)) is not None:
        redirects.append(redirect)
    return tuple(redirects)


def _redirect(lexer: Lexer) -> Redirect | None:
    lexer.skip_blanks()
    match = _REDIRECT.match(lexer.text, lexer.position)
    if match is None:
        return None
    variable = match[1].strip("{}") if match[1].startswith("{") else ""
    if variable and not lexer.is_bash:
        return None
    operator = match[2] if lexer.is_bash else match[2].replace("<<<", "<<")
    lexer.position = match.start(2) + len(operator)
    if variable:
        return Redirect(0, operator, lexer.next_word(), variable=variable)
    lexer.skip_blanks()
    following = _REDIRECT.match(lexer.text, lexer.position)
    if following and not (lexer.is_bash and operator in (">&", "<&")) and following[2] not in ("&>", "&>>"):
        lexer.position = following.start(2)
        raise lexer.unexpected_token(needs_word=True)
    descriptor = int(match[1][:9]) if match[1] else (0 if operator.startswith("<") else 1)
    if operator in ("<<", "<<-"):
        document = lexer.here_document(strips_tabs=operator == "<<-")
        return Redirect(descriptor, "<<", (), document)
    start = lexer.position
    target = lexer.next_word()
    return Redirect(descriptor, operator, target, source=lexer.text[start : lexer.position])
