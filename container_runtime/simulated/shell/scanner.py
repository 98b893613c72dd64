"""The characters of a script: blanks, operators, keywords, and the lines of here-documents."""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final, NamedTuple

from . import limits
from .syntax import KEYWORDS, HereDocument, IncompleteScript, ShellSyntaxError, Text, Word

_BLANKS: Final = re.compile(r"[ \t]*(?:#[^\n]*)?")
_UNQUOTED: Final = re.compile(r"(?:[^\\'\"`$#\n]+|\\[\s\S]|(?<=[^\s;&|()<>])#)*")
"""Text without quotes, expansions, comments and ends of lines, but with line continuations."""
_ESCAPED: Final = re.compile(r"\\([\s\S])")
_OPERATOR: Final = re.compile(r"&&|\|\||\|&|;;&|;;|;&|[;&|()\n]")
_REDIRECT: Final = re.compile(r"<<<|<<|<>|>>|>&|<&|>\||<|>")
_KEYWORD: Final = re.compile(r"[^ \t\n;&|()<>]*")
BREAKS: Final = frozenset(" \t\n;&|()<>")


class _Mark(NamedTuple):
    text: str
    depth: int
    position: int
    newlines: int
    newlines_end: int
    joined_span: tuple[int, int]
    joined_lines: int


class Scanner:
    def __init__(
        self,
        text: str,
        depth: int,
        *,
        is_bash: bool = False,
        line: int = 1,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_step` is called in each step that takes about a microsecond."""
        self.on_step = on_step
        self.text = text
        self.is_bash = is_bash
        self.depth = depth
        self.position = 0
        self.documents: list[HereDocument] = []
        self._newlines = self._newlines_end = 0
        self._joined_span = 0, 0
        self._joined_lines: list[int] = []
        """The positions from which line continuations were removed."""
        self.has_open_document = False
        """Whether the text ends within a here-document."""
        self._first_line = line

    @property
    def line(self) -> int:
        """The number of the present line."""
        self._newlines += self.text.count("\n", self._newlines_end, self.position)
        self._newlines_end = max(self.position, self._newlines_end)
        return self._first_line + self._newlines + bisect_right(self._joined_lines, self.position)

    def mark(self) -> _Mark:
        """Return the state at the beginning of a line, for `reset`."""
        return _Mark(
            self.text,
            self.depth,
            self.position,
            self._newlines,
            self._newlines_end,
            self._joined_span,
            len(self._joined_lines),
        )

    def reset(self, mark: _Mark, on_step: Callable[[], None]) -> None:
        self.on_step = on_step
        (
            self.text,
            self.depth,
            self.position,
            self._newlines,
            self._newlines_end,
            self._joined_span,
            joined,
        ) = mark
        del self._joined_lines[joined:]
        self.documents = []
        self.has_open_document = False

    def enter(self) -> None:
        self.depth += 1
        if self.depth > limits.MAX_NESTED_COMMANDS:
            raise ShellSyntaxError("commands are nested too deeply")

    def leave(self) -> None:
        self.depth -= 1

    # --- tokens

    def peek(self, size: int = 1) -> str:
        return self.text[self.position : self.position + size]

    def join_lines(self, start: int) -> None:
        """Remove the line continuations from a position to the next quote, expansion, comment or end of a line."""
        self.on_step()
        if self._joined_span[0] <= start < self._joined_span[1]:
            return
        text = self.text
        match = _UNQUOTED.match(text, start)
        assert match is not None
        parts: list[str] = []
        end = 0
        for escape in _ESCAPED.finditer(text, start, match.end()):
            self.on_step()
            if escape[1] == "\n":
                self._joined_lines.append(escape.start() - 2 * len(parts))
                parts.append(text[end : escape.start()])
                end = escape.end()
        self.text = "".join((*parts, text[end:]))
        self._joined_span = start, match.end() - 2 * len(parts)

    def skip_blanks(self) -> None:
        self.join_lines(self.position)
        match = _BLANKS.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def skip_lines(self) -> None:
        self.skip_blanks()
        while self.peek() == "\n":
            self.end_line()
            self.skip_blanks()

    def end_line(self) -> None:
        """Consume a newline, and the here-documents that begin after it."""
        self.position += 1
        documents, self.documents = self.documents, []
        for document in documents:
            document.text = self._read_document(document)

    def read_open_documents(self) -> None:
        """Consume the here-documents that are open where a substitution ends: bash reads them from the next line on."""
        position, end = self.position, self.text.find("\n", self.position) + 1
        self.position = end - 1 if end else len(self.text)
        self.end_line()
        self._joined_lines += [end] * self.text.count("\n", end, self.position)
        self.text = self.text[: end or None] + self.text[self.position :]
        self._joined_span = self._joined_span[0], min(self._joined_span[1], end)
        self.position = position

    def is_at_end(self) -> bool:
        """Skip blanks and a comment; return whether the text ends there."""
        self.skip_blanks()
        return self.position >= len(self.text)

    def has_next_line(self) -> bool:
        """Skip empty lines; return whether there is another one."""
        self.skip_lines()
        return self.position < len(self.text)

    def operator(self) -> str:
        """Return the operator that is next, without consuming it."""
        self.skip_blanks()
        match = _OPERATOR.match(self.text, self.position)
        return match[0] if match else ""

    def accept(self, text: str) -> bool:
        """Consume an operator if it is next; return whether it was."""
        if self.operator() != text:
            return False
        self.position += len(text)
        return True

    def keyword(self) -> str:
        """Return the plain word that is next, without consuming it."""
        self.skip_blanks()
        match = _KEYWORD.match(self.text, self.position)
        assert match is not None
        return match[0]

    def accept_keyword(self, word: str) -> bool:
        self.skip_lines()
        if self.keyword() != word:
            return False
        self.position += len(word)
        return True

    def expect(self, word: str) -> None:
        if not self.accept_keyword(word):
            raise self.unexpected_token(f' (expecting "{word}")')

    def unexpected_token(self, expected: str = "", *, needs_word: bool = False) -> ShellSyntaxError:
        """Return the error for the token that is next; bash takes the end of a line for missing where it `needs_word`."""
        operator = self.operator()
        if self.is_at_end():
            message = f"Syntax error: end of file unexpected{expected}"
            if needs_word:
                return self._unexpected(IncompleteScript(message, _near("newline")))
            error = IncompleteScript(message, "syntax error: unexpected end of file")
            error.bash_line = self.last_line + 1
            return error
        if operator == "\n":
            return self._unexpected(
                ShellSyntaxError(f"Syntax error: newline unexpected{expected}", _near("newline"))
            )
        redirect = _REDIRECT.match(self.text, self.position)
        if redirect is not None:
            message = f"Syntax error: redirection unexpected{expected}"
            return self._unexpected(ShellSyntaxError(message, _near(redirect[0])))
        token = operator or self.keyword() or self.peek()
        is_word = not operator and self.keyword() and token not in KEYWORDS
        word = "word" if is_word else f'"{token}"'
        return self._unexpected(ShellSyntaxError(f"Syntax error: {word} unexpected{expected}", _near(token)))

    def _unexpected(self, error: ShellSyntaxError) -> ShellSyntaxError:
        """Add the present line to an error."""
        start = self.text.rfind("\n", 0, self.position) + 1
        line = self.text[start:].partition("\n")[0]
        error.source = f"`{line}'"
        return error

    def unterminated(self, start: int, end: str, message: str) -> IncompleteScript:
        """Return the error for a text that begins at a position, and whose end is missing."""
        error = IncompleteScript(
            f"Syntax error: {message}", f"unexpected EOF while looking for matching `{end}'"
        )
        error.bash_line = (
            self._first_line + self.text.count("\n", 0, start) + bisect_right(self._joined_lines, start)
        )
        return error

    @property
    def last_line(self) -> int:
        text = self.text
        return self._first_line + text.count("\n") - text.endswith("\n") + len(self._joined_lines)

    # --- here-documents

    def has_documents(self) -> bool:
        return bool(self.documents)

    def _read_document(self, document: HereDocument) -> Word:
        lines = []
        while self.position < len(self.text):
            self.on_step()
            end = self.text.find("\n", self.position)
            end = len(self.text) if end < 0 else end
            line = self.text[self.position : end]
            self.position = min(end + 1, len(self.text))
            while document.expands and _continues(line) and self.position < len(self.text):
                end = self.text.find("\n", self.position)
                end = len(self.text) if end < 0 else end
                if document.strips_tabs and not self.is_bash and line != "\\":
                    line = line.lstrip("\t")  # bash removes tabs from the joined line
                line = line[:-1] + self.text[self.position : end]
                self.position = min(end + 1, len(self.text))
            line = line.lstrip("\t") if document.strips_tabs else line
            if line == document.delimiter:
                break
            ends = self.is_bash or self.text.endswith("\n") or self.position < len(self.text)
            lines.append(f"{line}\n" if ends else line)
        else:
            self.has_open_document = True
        text = "".join(lines)
        if not document.expands:
            return (Text(text, quoted=True),)
        return self.parse_document(text)

    def parse_document(self, text: str) -> Word:
        """Parse the text of a here-document that is expanded."""
        raise NotImplementedError


def _near(token: str) -> str:
    return f"syntax error near unexpected token `{token}'"


def _continues(line: str) -> bool:
    """Return whether a line ends with a backslash that is not escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
