"""The words of a script, with their quotes and expansions."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from .scanner import BREAKS, Scanner
from .syntax import (
    Arithmetic,
    Command,
    HereDocument,
    IncompleteScript,
    Parameter,
    Part,
    ProcessSubstitution,
    ShellSyntaxError,
    Substitution,
    Text,
    Tilde,
    Word,
)

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9#?$!@*-]")
_BRACED_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[#?$!@*-]")
_OPERATION: Final = re.compile(r":?[-=+?]|##?|%%?|//|/[#%]?|:|\^\^?|,,?|@[A-Za-z]")
_PLAIN: Final = re.compile(r"[\w./,+@%^~=:!?*{}\[\]-]+", re.ASCII)
_DELIMITER: Final = re.compile(r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^ \t\n;&|()<>'"\\])*""", re.DOTALL)
_DELIMITER_PIECE: Final = re.compile(r"""\$?'([^']*)'|\$?"((?:[^"\\]|\\.)*)"|\\.|([^'"\\])""", re.DOTALL)
"""Matches a part of a delimiter: in quotes, behind a backslash, or a plain character."""
_ESCAPED_IN_QUOTES: Final = re.compile(r"""\\([$`"\\])""")
_LITERAL: Final = re.compile(r"""[^$`"\\}]+""")
"""Matches text in which nothing is special within quotes, braces or a here-document."""
_TILDE: Final = re.compile(r"~([A-Za-z0-9._-]*)(?=[/: \t\n;&|()<>]|\Z)")
_ANSI: Final = re.compile(
    r"\\(?:x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.DOTALL
)
_ANSI_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\033", "E": "\033"
}  # fmt: skip


_OPEN_QUOTE: Final = "Unterminated quoted string"


class Lexer(Scanner):
    def __init__(
        self,
        text: str,
        depth: int,
        parse_list: "Callable[[Lexer], Command]",
        *,
        is_bash: bool = False,
        line: int = 1,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(text, depth, is_bash=is_bash, line=line, on_step=on_step)
        self._parse_list = parse_list

    def parse_document(self, text: str) -> Word:
        inner = Lexer(text, self.depth + 1, self._parse_list, is_bash=self.is_bash, on_step=self.on_step)
        return tuple(inner.quoted_parts(""))

    # --- words

    def next_word(self) -> Word:
        self.skip_blanks()
        start = self.position
        word = self.word()
        if self.position == start:
            raise self.unexpected_token(needs_word=True)
        return word

    def word(self, end: str = "", *, in_assignment: bool = False) -> Word:
        """Parse a word up to a blank or an operator, or with `end` up to one of these characters."""
        parts: list[Part] = []
        start = True
        while True:
            self.join_lines(self.position)
            if self.position >= len(self.text):
                break
            char = self.text[self.position]
            if char in end or (not end and char in BREAKS):
                if char not in "<>" or end or self.peek(2) not in ("<(", ">("):
                    break
                parts.append(self._process_substitution())
                continue
            tilde = _TILDE.match(self.text, self.position) if char == "~" and start else None
            if tilde:
                parts.append(Tilde(tilde[1]))
                self.position = tilde.end()
            else:
                parts += self._part(char, end, in_assignment=in_assignment)
            start = in_assignment and self.text[self.position - 1] == ":"
        return tuple(parts)

    def _part(self, char: str, end: str, *, in_assignment: bool) -> Sequence[Part]:
        if char == "'":
            return [Text(self._until_quote(), quoted=True)]
        if char == '"':
            start = self.position
            self.position += 1
            parts = self.quoted_parts('"')
            if self.peek() != '"':
                raise self.unterminated(start, '"', _OPEN_QUOTE)
            self.position += 1
            return parts or [Text("", quoted=True)]
        if char in "$`":
            return [self._dollar(quoted=False)]
        if char == "\\":
            self.position += 2
            escaped = self.text[self.position - 1 : self.position]
            return [] if escaped == "\n" else [Text(escaped or "\\", quoted=True)]
        match = None if end else _PLAIN.match(self.text, self.position)
        plain_text = match[0] if match else char
        if in_assignment and ":" in plain_text[:-1]:
            plain_text = plain_text.partition(":")[0] + ":"
        self.position += len(plain_text)
        return [Text(plain_text, quoted=False)]

    def _until_quote(self) -> str:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise self.unterminated(self.position, "'", _OPEN_QUOTE)
        content = self.text[self.position + 1 : end]
        self.position = end + 1
        return content

    def quoted_parts(self, end: str) -> list[Part]:
        """Parse a text in which only `$`, backquotes and some backslashes are special, up to a character or the end of the text."""
        parts: list[Part] = []
        literal: list[str] = []
        escapable = '$`"\\\n' if end == '"' else "$`\\\n" if not end else f'$`"\\\n{end}'

        def flush() -> None:
            if literal:
                parts.append(Text("".join(literal), quoted=True))
                literal.clear()

        while self.position < len(self.text):
            self.on_step()
            match = _LITERAL.match(self.text, self.position)
            if match is not None:
                literal.append(match[0])
                self.position = match.end()
                continue
            char = self.text[self.position]
            if end and char in end:
                break
            if char in "$`":
                flush()
                parts.append(self._dollar(quoted=True))
                continue
            if char == '"' and end == "}":
                self.position += 1
                continue
            follower = self.text[self.position + 1 : self.position + 2]
            if char == "\\" and follower and follower in escapable:
                char = "" if follower == "\n" else follower
                self.position += 1
            self.position += 1
            literal.append(char)
        flush()
        return parts

    def _dollar(self, *, quoted: bool) -> Part:
        self.enter()
        try:
            return self._expansion(quoted=quoted)
        finally:
            self.leave()

    def _expansion(self, *, quoted: bool) -> Part:
        if self.peek() == "`":
            return Substitution(self._parse_backquotes(quoted=quoted), quoted)
        self.join_lines(self.position + 1)
        text = self.text
        if text.startswith("$((", self.position):
            expression = self._arithmetic()
            if expression is not None:
                return Arithmetic(expression, quoted)
        if text.startswith("$(", self.position):
            self.position += 2
            return Substitution(self._nested_list(), quoted)
        if text.startswith("${", self.position):
            return self._braces(quoted=quoted)
        if text.startswith("$'", self.position) and not quoted:
            return Text(self._ansi_quoted(), quoted=True)
        if text.startswith('$"', self.position) and not quoted:
            self.position += 1
            return Text("", quoted=False)
        match = _NAME.match(text, self.position + 1)
        self.position = match.end() if match else self.position + 1
        return Parameter(name=match[0], braced=False, quoted=quoted) if match else Text("$", quoted)

    def _nested_list(self) -> Command:
        documents, self.documents = self.documents, []
        script = self._parse_list(self)
        if not self.accept(")"):
            error = self.unexpected_token(' (expecting ")")')
            if isinstance(error, IncompleteScript):
                error.bash = "unexpected EOF while looking for matching `)'"
            raise error
        if self.is_bash and self.documents:
            self.read_open_documents()
        self.documents = documents
        return script

    def _process_substitution(self) -> Part:
        is_output = self.peek() == ">"
        self.position += 2
        return ProcessSubstitution(self._nested_list(), is_output=is_output)

    def _parse_backquotes(self, *, quoted: bool) -> Command:
        content: list[str] = []
        position = self.position + 1
        while position < len(self.text) and self.text[position] != "`":
            self.on_step()
            follower = self.text[position + 1 : position + 2]
            if (
                self.text[position] == "\\"
                and follower
                and (follower in "$`\\" or (quoted and follower == '"'))
            ):
                position += 1
            content.append(self.text[position])
            position += 1
        if position >= len(self.text):
            raise self.unterminated(self.position, "`", "EOF in backquote substitution")
        self.position = position + 1
        inner = Lexer(
            "".join(content),
            self.depth,
            self._parse_list,
            is_bash=self.is_bash,
            line=self.line if self.is_bash else 1,
            on_step=self.on_step,
        )
        script = self._parse_list(inner)
        if not inner.is_at_end():
            raise inner.unexpected_token()
        return script

    def _ansi_quoted(self) -> str:
        """Parse `$'...'`."""
        position = self.position + 2
        while position < len(self.text) and self.text[position] != "'":
            self.on_step()
            position += 2 if self.text[position] == "\\" else 1
        if position >= len(self.text):
            raise self.unterminated(self.position, "'", _OPEN_QUOTE)
        content = self.text[self.position + 2 : position]
        self.position = position + 1

        def character(match: re.Match[str]) -> str:
            self.on_step()
            return _ansi_character(match)

        return _ANSI.sub(character, content)

    def _arithmetic(self) -> Word | None:
        """Parse `$((...))`; return None if it is a command substitution that begins with a subshell."""
        start = self.position
        self.position += 3
        expression = self.arithmetic_expression()
        if expression is None:
            self.position = start
            if not self.is_bash:
                raise ShellSyntaxError("Syntax error: Missing '))'")
        return expression

    def arithmetic_expression(self) -> Word | None:
        """Parse an expression up to `))`, which is consumed; None if the parentheses before it are not balanced."""
        start = self.position
        parts: list[Part] = []
        parentheses = 0
        while self.position < len(self.text):
            self.on_step()
            char = self.text[self.position]
            if parentheses == 0 and self.text.startswith("))", self.position):
                self.position += 2
                return tuple(parts)
            parentheses += (char == "(") - (char == ")")
            if parentheses < 0:
                return None
            if char in "$`":
                parts.append(self._dollar(quoted=True))
                continue
            if char in "\"'":
                parts += [Text("", quoted=True)] if char == '"' else ()
                self.position += 1
                continue
            if char == "\\" and (follower := self.peek(2)[1:]) and follower in '$`"\\\n':
                char = follower.strip("\n")
                self.position += 1
            parts.append(Text(char, quoted=True))
            self.position += 1
        raise self.unterminated(start, ")", "Missing '))'")

    # --- ${...}

    def _braces(self, *, quoted: bool) -> Part:
        start = self.position
        self.position += 2
        text = self.text
        operator = ""
        if (self.peek() == "#" and (follower := self.peek(2)[1:]) and follower not in "}:%=+?-#") or (
            self.peek() == "#" and self.peek(3) in ("##}", "#?}", "#-}", "#$}", "#!}")
        ):
            operator, self.position = "length", self.position + 1
        elif self.peek() == "!" and self.peek(2)[1:] not in ("}", ":", "-", "+", "?", "="):
            operator, self.position = "indirect", self.position + 1
        match = _BRACED_NAME.match(text, self.position)
        if match is None:
            return self._bad_substitution(start, quoted=quoted)
        self.position = match.end()
        index = self._index() if self.peek() == "[" else None
        if operator == "indirect" and self.peek() in "*@" and self.peek(2)[1:] == "}":
            operator, self.position = "names", self.position + 1
        word: Word = ()
        second: Word | None = None
        if self.peek() != "}":
            operation = _OPERATION.match(text, self.position)
            if operation is None or operator in ("length", "names"):
                return self._bad_substitution(start, quoted=quoted)
            operator = f"{operator} {operation[0]}".strip()
            self.position = operation.end()
            word, second = self._operands(operation[0], quoted=quoted)
        if self.peek() != "}":
            return self._bad_substitution(start, quoted=quoted)
        self.position += 1
        return Parameter(
            name=match[0], operator=operator, word=word, second=second, index=index, quoted=quoted
        )

    def _bad_substitution(self, start: int, *, quoted: bool) -> Parameter:
        """Return an invalid expansion, which begins at a position: an error only when it is executed."""
        end = self.text.find("}", self.position)
        if end < 0:
            raise self.unterminated(start, "}", "Missing '}'")
        self.position = end + 1
        return Parameter(name=self.text[start : self.position], operator="bad", quoted=quoted)

    def _index(self) -> Word:
        start = self.position
        self.position += 1
        word = self.word("]")
        if self.peek() != "]":
            raise self.unterminated(start, "]", "Missing ']'")
        self.position += 1
        return word

    def index(self) -> Word:
        """Parse `[index]`."""
        return self._index()

    def _operands(self, operation: str, *, quoted: bool) -> tuple[Word, Word | None]:
        is_default = operation[-1] in "-=+?" and operation[0] != "/"
        if is_default and quoted:
            return tuple(self.quoted_parts("}")), None
        if operation[0] == "/":
            first = self.word("/}")
            second: Word | None = None
            if self.peek() == "/":
                self.position += 1
                second = self.word("}")
            return first, second
        if operation == ":":
            first = self.word(":}")
            if self.peek() == ":":
                self.position += 1
                return first, self.word("}")
            return first, None
        return self.word("}"), None

    def here_document(self, *, strips_tabs: bool) -> HereDocument:
        """Parse the delimiter of a here-document, in which nothing is expanded."""
        self.skip_blanks()
        start = self.position
        match = _DELIMITER.match(self.text, start)
        assert match is not None
        self.position = match.end()
        if self.is_bash or self.position == start or self.peek() in "\"'":
            self.position = start
            self.next_word()
        text = self.text[start : self.position]
        pieces = [*_DELIMITER_PIECE.finditer(text)]
        delimiter = "".join(_unquoted(piece) for piece in pieces)
        expands = all(piece[3] is not None for piece in pieces)
        document = HereDocument(delimiter=delimiter, expands=expands, strips_tabs=strips_tabs)
        self.documents.append(document)
        return document


def _unquoted(piece: re.Match[str]) -> str:
    """Return a piece of the delimiter of a here-document without its quotes."""
    single, double, plain = piece.groups()
    if plain is not None:
        return plain
    if double is not None:
        return _ESCAPED_IN_QUOTES.sub(r"\1", double)
    return piece[0][1:] if single is None else single


def _ansi_character(match: re.Match[str]) -> str:
    code = match[0][1:]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else match[0]
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    if code[0] == "c" and len(code) > 1:
        return chr(ord(code[1]) & 0x1F)
    if code in "\\'\"?":
        return code
    return _ANSI_ESCAPES.get(code, match[0])
