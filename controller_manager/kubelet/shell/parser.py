"""The parser of the shell: converts text to commands. It does not expand or execute them."""

import re
from collections.abc import Sequence
from typing import Final

from mockube.controller_manager.kubelet.shell.syntax import (
    Arithmetic,
    Case,
    Command,
    CommandGroup,
    CommandList,
    For,
    FunctionDefinition,
    If,
    Loop,
    Parameter,
    Part,
    Pipeline,
    Redirect,
    ShellSyntaxError,
    SimpleCommand,
    Substitution,
    Text,
    Word,
)

MAX_SCRIPT: Final = 64 * 1024
MAX_DEPTH: Final = 40
"""The maximum depth of nested commands."""


_BLANKS: Final = re.compile(r"(?:[ \t\r]|\\\n)*(?:#[^\n]*)?")
_OPERATOR: Final = re.compile(r"&&|\|\||;;|[;&|()\n]")
_REDIRECT: Final = re.compile(r"([0-9]?)(<<<|<<|>>|>&|<&|>\||&>|>|<)")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9#?$!@*-]")
_OPERATION: Final = re.compile(r":?[-=+?]|##?|%%?")
_FUNCTION: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[ \t]*\(\)[ \t\n]*")
_BREAKS: Final = frozenset(" \t\r\n;&|()<>")
_PLAIN: Final = re.compile(r"[\w./:=,+@%^~-]+")
_RESERVED: Final = frozenset(["then", "elif", "else", "fi", "do", "done", "esac", "}"])


def parse(text: str) -> Command:
    """Return the script as a command; raise `ShellSyntaxError` if it is invalid or not supported."""
    if len(text) > MAX_SCRIPT:
        raise ShellSyntaxError("the script is too long")
    parser = _Parser(text)
    script = parser.list()
    if not parser.is_at_end():
        raise ShellSyntaxError(f"syntax error near {text[parser.position : parser.position + 20]!r}")
    return script


class _Parser:
    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise ShellSyntaxError("commands are nested too deeply")
        self._text = text
        self._depth = depth
        self.position = 0

    # --- tokens

    def _skip_blanks(self) -> None:
        match = _BLANKS.match(self._text, self.position)
        assert match is not None
        self.position = match.end()

    def _skip_lines(self) -> None:
        self._skip_blanks()
        while self._text.startswith("\n", self.position):
            self.position += 1
            self._skip_blanks()

    def is_at_end(self) -> bool:
        self._skip_lines()
        return self.position >= len(self._text)

    def _operator(self) -> str:
        self._skip_blanks()
        match = _OPERATOR.match(self._text, self.position)
        return match[0] if match else ""

    def _accept(self, text: str) -> bool:
        """Consume an operator if it is next; return whether it was."""
        if self._operator() != text:
            return False
        self.position += len(text)
        return True

    def _keyword(self) -> str:
        """Return the plain word that is next, without consuming it."""
        self._skip_blanks()
        end = self.position
        while end < len(self._text) and self._text[end] not in _BREAKS:
            end += 1
        return self._text[self.position : end]

    def _accept_keyword(self, word: str) -> bool:
        self._skip_lines()
        if self._keyword() != word:
            return False
        self.position += len(word)
        return True

    def _expect(self, word: str) -> None:
        if not self._accept_keyword(word):
            raise ShellSyntaxError(f"syntax error: {word!r} is missing")

    # --- commands

    def list(self) -> Command:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ShellSyntaxError("commands are nested too deeply")
        items: list[tuple[str, Command]] = []
        operator = ";"
        while True:
            self._skip_lines()
            if (
                self.position >= len(self._text)
                or self._operator() in (")", ";;")
                or self._keyword() in _RESERVED
            ):
                break
            items.append((operator, self._pipeline()))
            operator = self._operator()
            if operator not in (";", "&", "&&", "||", "\n"):
                break
            self.position += len(operator)
            # A background command is executed to its end first.
            operator = ";" if operator in ("&", "\n") else operator
        self._depth -= 1
        return items[0][1] if len(items) == 1 else CommandList(tuple(items))

    def _pipeline(self) -> Command:
        negated = self._accept_keyword("!")
        commands = [self._command()]
        while self._accept("|"):
            self._skip_lines()
            commands.append(self._command())
        return commands[0] if len(commands) == 1 and not negated else Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        if self._accept("("):
            body = self.list()
            if not self._accept(")"):
                raise ShellSyntaxError("syntax error: ')' is missing")
            return CommandGroup(body, subshell=True, redirects=self._redirects())
        compound = {
            "if": self._if,
            "while": lambda: self._loop(is_while=True),
            "until": lambda: self._loop(is_while=False),
            "for": self._for,
            "case": self._case,
            "{": self._braces,
        }.get(self._keyword())
        if compound is not None:
            self.position += len(self._keyword())
            command = compound()
            redirects = self._redirects()
            return CommandGroup(command, subshell=False, redirects=redirects) if redirects else command
        match = _FUNCTION.match(self._text, self.position)
        if match:
            self.position = match.end()
            return FunctionDefinition(match[1], self._command())
        return self._simple()

    def _if(self) -> Command:
        branches = [self._branch()]
        while self._accept_keyword("elif"):
            branches.append(self._branch())
        otherwise = self.list() if self._accept_keyword("else") else None
        self._expect("fi")
        return If(tuple(branches), otherwise)

    def _branch(self) -> tuple[Command, Command]:
        condition = self.list()
        self._expect("then")
        return condition, self.list()

    def _loop(self, *, is_while: bool) -> Command:
        condition = self.list()
        return Loop(condition, self._do(), is_while)

    def _do(self) -> Command:
        self._expect("do")
        body = self.list()
        self._expect("done")
        return body

    def _for(self) -> Command:
        name = self._keyword()
        self.position += len(name)
        words: list[Word] | None = None
        if self._accept_keyword("in"):
            words = []
            while self._operator() not in (";", "\n"):
                words.append(self._next_word())
        self._accept(";")
        return For(name, words, self._do())

    def _case(self) -> Command:
        word = self._next_word()
        self._expect("in")
        branches = []
        while not self._accept_keyword("esac"):
            self._accept("(")
            patterns = [self._next_word()]
            while self._accept("|"):
                patterns.append(self._next_word())
            if not self._accept(")"):
                raise ShellSyntaxError("syntax error: ')' is missing in case")
            branches.append((tuple(patterns), self.list()))
            self._accept(";;")
        return Case(word, tuple(branches))

    def _braces(self) -> Command:
        body = self.list()
        self._expect("}")
        return CommandGroup(body, subshell=False, redirects=self._redirects())

    def _simple(self) -> Command:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._skip_blanks()
            if self.position >= len(self._text) or self._operator():
                break
            redirect = self._redirect()
            if redirect is not None:
                redirects.append(redirect)
                continue
            match = None if words else _ASSIGNMENT.match(self._text, self.position)
            if match:
                self.position = match.end()
                assignments.append((match[1], self._word()))
            else:
                words.append(self._next_word())
        if not (assignments or words or redirects):
            raise ShellSyntaxError(f"syntax error near {self._text[self.position : self.position + 20]!r}")
        return SimpleCommand(tuple(assignments), tuple(words), tuple(redirects))

    def _redirects(self) -> Sequence[Redirect]:
        redirects = []
        while (redirect := self._redirect()) is not None:
            redirects.append(redirect)
        return tuple(redirects)

    def _redirect(self) -> Redirect | None:
        self._skip_blanks()
        match = _REDIRECT.match(self._text, self.position)
        if match is None:
            return None
        if match[2].startswith("<<"):
            raise ShellSyntaxError(f"{match[2]} is not simulated")
        self.position = match.end()
        descriptor = int(match[1]) if match[1] else (0 if match[2].startswith("<") else 1)
        return Redirect(descriptor, match[2], self._next_word())

    # --- words

    def _next_word(self) -> Word:
        self._skip_blanks()
        start = self.position
        word = self._word()
        if self.position == start:
            raise ShellSyntaxError(f"syntax error near {self._text[self.position : self.position + 20]!r}")
        return word

    def _word(self, end: str = "") -> Word:
        """Parse a word up to a blank or an operator, or with `end` up to that character."""
        parts: list[Part] = []
        while self.position < len(self._text):
            char = self._text[self.position]
            if char == end or (not end and char in _BREAKS):
                break
            parts += self._part(char)
        return tuple(parts)

    def _part(self, char: str) -> Sequence[Part]:
        if char == "'":
            return [Text(self._read_until("'"), quoted=True)]
        if char == '"':
            return self._double_quoted()
        if char in "$`":
            return [self._dollar(quoted=False)]
        if char == "\\":
            self.position += 2
            return [Text(self._text[self.position - 1 : self.position], quoted=True)]
        match = _PLAIN.match(self._text, self.position)
        plain_text = match[0] if match else char
        self.position += len(plain_text)
        return [Text(plain_text, quoted=False)]

    def _read_until(self, mark: str) -> str:
        end = self._text.find(mark, self.position + 1)
        if end < 0:
            raise ShellSyntaxError("unterminated quoted string")
        content = self._text[self.position + 1 : end]
        self.position = end + 1
        return content

    def _double_quoted(self) -> Sequence[Part]:
        self.position += 1
        parts: list[Part] = []
        while self.position < len(self._text):
            char = self._text[self.position]
            if char == '"':
                self.position += 1
                return parts or [Text("", quoted=True)]
            if char in "$`":
                parts.append(self._dollar(quoted=True))
            else:
                follower = self._text[self.position + 1 : self.position + 2]
                if char == "\\" and follower and follower in '$`"\\\n':
                    char = "" if follower == "\n" else follower
                    self.position += 1
                self.position += 1
                parts.append(Text(char, quoted=True))
        raise ShellSyntaxError("unterminated quoted string")

    def _dollar(self, *, quoted: bool) -> Part:
        text = self._text
        if text[self.position] == "`":
            return Substitution(self._parse_nested(self._read_until("`")), quoted)
        if text.startswith("$((", self.position):
            end = text.find("))", self.position)
            if end < 0:
                raise ShellSyntaxError("syntax error: '))' is missing")
            inner = _Parser(text[self.position + 3 : end], self._depth + 1)
            self.position = end + 2
            return Arithmetic(inner._word("\0"), quoted)
        if text.startswith("$(", self.position):
            inner = _Parser(text, self._depth + 1)
            inner.position = self.position + 2
            script = inner.list()
            if not inner._accept(")"):
                raise ShellSyntaxError("syntax error: ')' is missing")
            self.position = inner.position
            return Substitution(script, quoted)
        if text.startswith("${", self.position):
            return self._parse_braces(quoted=quoted)
        match = _NAME.match(text, self.position + 1)
        self.position = match.end() if match else self.position + 1
        return Parameter(match[0], "", (), quoted) if match else Text("$", quoted=True)

    def _parse_nested(self, text: str) -> Command:
        return _Parser(text, self._depth + 1).list()

    def _parse_braces(self, *, quoted: bool) -> Part:
        self.position += 2
        operator = ""
        word: Word = ()
        if (
            self._text[self.position : self.position + 1] == "#"
            and self._text[self.position + 1 : self.position + 2] != "}"
        ):
            operator = "length"
            self.position += 1
        match = _NAME.match(self._text, self.position)
        if match is None:
            raise ShellSyntaxError("bad substitution")
        self.position = match.end()
        operation = None if operator else _OPERATION.match(self._text, self.position)
        if operation:
            operator, self.position = operation[0], operation.end()
            word = self._word("}")
        if self._text[self.position : self.position + 1] != "}":
            raise ShellSyntaxError("bad substitution")
        self.position += 1
        return Parameter(match[0], operator, word, quoted)
