"""The parser of the shell: lists, pipelines and compound commands. It does not expand or execute them."""

import re
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Final

from . import limits
from .conditional_parser import parse_conditional
from .lexer import Lexer
from .process import Effect
from .simple_parser import parse_redirects, parse_simple
from .syntax import (
    ArithmeticCommand,
    ArithmeticFor,
    Background,
    Branch,
    Case,
    Command,
    CommandGroup,
    CommandList,
    For,
    FunctionDefinition,
    If,
    IncompleteScript,
    Loop,
    Part,
    Pipeline,
    Redirect,
    ScriptEnd,
    ShellSyntaxError,
    Text,
    Word,
)
from .thread_turns import in_turns

_FUNCTION: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.:-]*)[ \t]*\([ \t]*\)")
_BASH_FUNCTION: Final = re.compile(r"([^\s$'\"`\\;&|<>(){}#!=~*?\[\]]+)[ \t]*\([ \t]*\)")
"""bash allows nearly any word as the name of a function."""
_RESERVED: Final = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "}"])
_BLANKS: Final = (Text(" ", quoted=True), Text("\t", quoted=True))
_LIST_ENDS: Final = frozenset([")", ";;", ";&", ";;&"])


class ShellScript:
    """A script, of which each command, up to the end of a line, is parsed before the rest is, as a shell does."""

    def __init__(self, text: str, *, is_bash: bool = False, line: int = 1) -> None:
        if len(text) > limits.MAX_SCRIPT:
            raise ShellSyntaxError("the script is too long")
        self._lexer = Lexer(text, 0, _list, is_bash=is_bash, line=line)

    def next_command(self) -> Generator[Effect, bytes | None, Command | None]:
        """Return the next command; None at the end. Raise `ShellSyntaxError` if it is invalid or not supported."""
        start = self._lexer.mark()

        def parse_next(on_step: Callable[[], None]) -> Command | None:
            self._lexer.reset(start, on_step)
            return self._parse_next()

        return (yield from in_turns(parse_next))

    def _parse_next(self) -> Command | None:
        try:
            return _line(self._lexer) if self._lexer.has_next_line() else None
        except ScriptEnd:
            return None
        except ShellSyntaxError as error:
            error.line = error.line or self._lexer.line
            raise


def _line(lexer: Lexer) -> Command:
    """Parse commands up to the end of a line."""
    command = _and_or_lists(lexer, is_line=True)
    if command is None:
        raise lexer.unexpected_token()
    if lexer.operator() == "\n":
        lexer.end_line()
    elif not lexer.is_at_end():
        raise lexer.unexpected_token()
    elif lexer.has_documents():
        lexer.end_line()
    return command


def is_complete(text: str, on_step: Callable[[], None] = lambda: None) -> bool:
    """Return whether a text is a script that does not need more lines; invalid ones do not."""
    lexer = Lexer(text, 0, _list, on_step=on_step)
    try:
        while lexer.has_next_line():
            if _and_or_lists(lexer, is_line=True) is None:
                return True
            if lexer.operator() == "\n":
                lexer.end_line()
            elif not lexer.is_at_end():
                return True
    except IncompleteScript:
        return False
    except ShellSyntaxError:
        return True
    return not lexer.has_documents() and not lexer.has_open_document and not text.endswith("\\\n")


def _list(lexer: Lexer) -> Command:
    """Parse commands up to a reserved word, a closing parenthesis or the end."""
    lexer.enter()
    command = _and_or_lists(lexer, is_line=False)
    lexer.leave()
    return CommandList(()) if command is None else command


def _required_list(lexer: Lexer, end: str) -> Command:
    """Parse commands, of which there is at least one, and which `end` follows."""
    command = _list(lexer)
    if command == CommandList(()):
        raise lexer.unexpected_token(f' (expecting "{end}")' if lexer.is_at_end() else "")
    return command


def _and_or_lists(lexer: Lexer, *, is_line: bool) -> Command | None:
    """Parse and-or lists; with `is_line`, up to the end of the line."""
    items: list[tuple[str, Command]] = []
    while True:
        if not (is_line and items):
            lexer.skip_lines()
        if (
            lexer.is_at_end()
            or lexer.operator() in (_LIST_ENDS if not is_line else {"\n"})
            or lexer.keyword() in _RESERVED
        ):
            break
        command = _and_or_list(lexer)
        operator = lexer.operator()
        items.append((";", Background(command) if operator == "&" else command))
        if operator not in (";", "&", "\n") or (is_line and operator == "\n"):
            break
        if operator == "\n":
            lexer.end_line()
        else:
            lexer.position += 1
    if not items:
        return None
    return items[0][1] if len(items) == 1 else CommandList(tuple(items))


def _and_or_list(lexer: Lexer) -> Command:
    items = [(";", _pipeline(lexer))]
    while (operator := lexer.operator()) in ("&&", "||"):
        lexer.position += 2
        lexer.skip_lines()
        items.append((operator, _pipeline(lexer)))
    return items[0][1] if len(items) == 1 else CommandList(tuple(items))


def _pipeline(lexer: Lexer) -> Command:
    negated = False
    while lexer.keyword() == "!":
        if negated and not lexer.is_bash:
            raise lexer.unexpected_token()
        lexer.position += 1
        negated = not negated
        if lexer.is_bash and (lexer.operator() in (";", "\n") or lexer.is_at_end()):
            return Pipeline((), negated)
    commands = [_command(lexer)]
    while (operator := lexer.operator()) in ("|", "|&"):
        lexer.position += len(operator)
        lexer.skip_lines()
        if operator == "|&":
            duplicate = Redirect(2, ">&", (Text("1", quoted=False),))
            commands[-1] = CommandGroup(commands[-1], subshell=False, redirects=(duplicate,), line=lexer.line)
        commands.append(_command(lexer))
    return commands[0] if len(commands) == 1 and not negated else Pipeline(tuple(commands), negated)


def _command(lexer: Lexer) -> Command:
    lexer.skip_blanks()
    lexer.enter()
    line = lexer.line
    if lexer.keyword() == "in" and not lexer.is_bash:
        raise lexer.unexpected_token()
    parse_compound = _compound(lexer)
    if parse_compound is None:
        command = _simple_or_function(lexer)
    else:
        command = parse_compound(lexer)
        redirects = parse_redirects(lexer)
        if redirects and isinstance(command, CommandGroup):
            command = CommandGroup(
                command.body, subshell=command.subshell, redirects=redirects, line=command.line
            )
        elif redirects:
            command = CommandGroup(command, subshell=False, redirects=redirects, line=line)
    lexer.leave()
    return command


def _compound(lexer: Lexer) -> Callable[[Lexer], Command] | None:
    """Consume the beginning of a compound command, and return the function that parses the rest; None for another command."""
    if lexer.is_bash and lexer.peek(2) == "((":
        start = lexer.position
        lexer.position += 2
        expression = lexer.arithmetic_expression()
        if expression is not None:
            return lambda lexer: ArithmeticCommand(expression, lexer.line)
        lexer.position = start
    if lexer.peek() == "(":
        lexer.position += 1
        return _subshell
    keyword = lexer.keyword()
    compound = _COMPOUNDS.get(keyword)
    if compound is not None:
        lexer.position += len(keyword)
    return compound


def _subshell(lexer: Lexer) -> Command:
    line = lexer.line
    body = _required_list(lexer, ")")
    if not lexer.accept(")"):
        raise lexer.unexpected_token(' (expecting ")")')
    return CommandGroup(body, subshell=True, redirects=(), line=line)


def _braces(lexer: Lexer) -> Command:
    line = lexer.line
    body = _required_list(lexer, "}")
    lexer.expect("}")
    return CommandGroup(body, subshell=False, redirects=(), line=line)


def _if(lexer: Lexer) -> Command:
    branches = [_if_branch(lexer)]
    while lexer.accept_keyword("elif"):
        branches.append(_if_branch(lexer))
    otherwise = _required_list(lexer, "fi") if lexer.accept_keyword("else") else None
    lexer.expect("fi")
    return If(tuple(branches), otherwise)


def _if_branch(lexer: Lexer) -> tuple[Command, Command]:
    condition = _required_list(lexer, "then")
    lexer.expect("then")
    return condition, _required_list(lexer, "fi")


def _loop(lexer: Lexer, *, is_while: bool) -> Command:
    condition = _required_list(lexer, "do")
    return Loop(condition, _do(lexer), is_while)


def _do(lexer: Lexer) -> Command:
    lexer.skip_lines()
    if lexer.is_bash and lexer.keyword() == "{":
        lexer.position += 1
        return _braces(lexer)
    lexer.expect("do")
    body = _required_list(lexer, "done")
    lexer.expect("done")
    return body


def _for(lexer: Lexer) -> Command:
    lexer.skip_blanks()
    line = lexer.line
    if lexer.is_bash and lexer.peek(2) == "((":
        return _arithmetic_for(lexer)
    name = lexer.keyword()
    is_name = name.isascii() and name.isidentifier()
    if not (name if lexer.is_bash else is_name):
        error = lexer.unexpected_token(needs_word=True)
        error.args = ("Syntax error: Bad for loop variable",)
        raise error
    lexer.position += len(name)
    words: list[Word] | None = None
    if lexer.accept_keyword("in"):
        words = []
        while lexer.operator() not in (";", "\n"):
            if lexer.is_at_end():
                raise lexer.unexpected_token(' (expecting "do")' if words else "")
            words.append(lexer.next_word())
    if lexer.operator() == ";":
        lexer.position += 1
    body = _do(lexer)
    return For(name, None if words is None else tuple(words), body, line if is_name else lexer.line)


def _arithmetic_for(lexer: Lexer) -> Command:
    begin, line = lexer.position, lexer.line
    lexer.position += 2
    expression = lexer.arithmetic_expression()
    if expression is None:
        raise ScriptEnd("unbalanced parentheses")
    parts: list[list[Part]] = [[]]
    for part in expression:
        if part == Text(";", quoted=True):
            parts.append([])
        elif parts[-1] or part not in _BLANKS:
            parts[-1].append(part)
    if len(parts) != 3:
        bash = "syntax error: `;' unexpected" if parts[3:] else "syntax error: arithmetic expression required"
        error = ShellSyntaxError("Syntax error: Bad for loop variable", bash)
        error.source = f"syntax error: `{lexer.text[begin : lexer.position]}'"
        raise error
    lexer.accept(";")
    start, condition, step = map(tuple, parts)
    return ArithmeticFor(start, condition, step, _do(lexer), line)


def _case(lexer: Lexer) -> Command:
    line = lexer.line
    word = lexer.next_word()
    lexer.expect("in")
    branches = []
    while not lexer.accept_keyword("esac"):
        if lexer.is_at_end():
            raise lexer.unexpected_token(' (expecting ")")')
        lexer.accept("(")
        patterns = [lexer.next_word()]
        while lexer.accept("|"):
            patterns.append(lexer.next_word())
        if not lexer.accept(")"):
            raise lexer.unexpected_token(' (expecting ")")', needs_word=True)
        body = _list(lexer)
        end = lexer.operator()
        if end in (";;", ";&", ";;&"):
            lexer.position += len(end)
        else:
            lexer.skip_lines()
            if lexer.keyword() != "esac":
                raise lexer.unexpected_token(' (expecting ";;")')
        branches.append(Branch(tuple(patterns), body, end if end in (";&", ";;&") else ";;"))
    return Case(word, tuple(branches), line)


def _function_keyword(lexer: Lexer) -> Command:
    name = lexer.keyword()
    if not name:
        raise lexer.unexpected_token(needs_word=True)
    lexer.position += len(name)
    if lexer.accept("("):
        lexer.accept(")")
    lexer.skip_lines()
    return FunctionDefinition(name, _command(lexer))


def _not_simulated(_: Lexer, name: str) -> Command:
    raise ShellSyntaxError(f"{name} is not simulated")


def _simple_or_function(lexer: Lexer) -> Command:
    match = (_BASH_FUNCTION if lexer.is_bash else _FUNCTION).match(lexer.text, lexer.position)
    if match is None:
        return parse_simple(lexer)
    lexer.position = match.end()
    lexer.skip_lines()
    if lexer.is_at_end():
        raise lexer.unexpected_token()
    return FunctionDefinition(match[1], _command(lexer))


_COMPOUNDS: Final[Mapping[str, Callable[[Lexer], Command]]] = {
    "if": _if,
    "while": partial(_loop, is_while=True),
    "until": partial(_loop, is_while=False),
    "for": _for,
    "case": _case,
    "{": _braces,
    "[[": parse_conditional,
    "function": _function_keyword,
    **{name: partial(_not_simulated, name=name) for name in ("select", "coproc")},
}
