"""The text of an expression, and its errors with their locations, as cel-go prints them."""

from bisect import bisect_right

from msgspec import Struct

MAX_ERRORS = 100
MAX_SNIPPET_BYTES = 16384
"""The errors that cel-go reports, and the longest line that it prints below one (common/errors.go, common/error.go)."""
WIDE_DOT, WIDE_MARK = "\N{FULLWIDTH FULL STOP}", "\N{FULLWIDTH CIRCUMFLEX ACCENT}"
"""The characters below those that are not ASCII."""
NO_LOCATION = -1
"""The offset of an error without a location."""


class Source:
    """The text of an expression. Lines are counted from 1, columns from 0."""

    __slots__ = ("line_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_starts = [0]
        self.line_starts += [i + 1 for i, char in enumerate(text) if char == "\n"]

    def location(self, offset: int) -> tuple[int, int]:
        if offset < 0:
            return -1, -1
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1]

    def snippet(self, line: int) -> str | None:
        if not self.text or not 0 < line <= len(self.line_starts):
            return None
        start = self.line_starts[line - 1]
        return self.text[start : self.line_starts[line] - 1 if line < len(self.line_starts) else None]


class Issue(Struct, frozen=True):
    """One error about an expression."""

    offset: int
    message: str
    location: tuple[int, int] | None = None
    """The location, if it is not that of the offset: ANTLR reports column -1 in an empty text."""

    def display(self, source: Source) -> str:
        line, column = self.location or source.location(self.offset)
        text = f"ERROR: <input>:{line}:{column + 1}: {self.message}"
        snippet = source.snippet(line)
        if snippet is None or len(snippet.encode()) > MAX_SNIPPET_BYTES:
            return text
        snippet = snippet.replace("\t", " ")
        before = "".join(WIDE_DOT if ord(char) > 127 else "." for char in snippet[:column])
        mark = WIDE_MARK if ord(snippet[column : column + 1] or " ") > 127 else "^"
        return f"{text}\n | {snippet}\n | {before}{mark}"


class Issues(Exception):
    """The errors of an expression, with cel-go's text."""

    def __init__(self, source: Source, issues: list[Issue]) -> None:
        super().__init__()
        self.source = source
        self.issues = issues

    def __str__(self) -> str:
        issues = sorted(self.issues[:MAX_ERRORS], key=self._position)
        lines = [issue.display(self.source) for issue in issues]
        if len(self.issues) > MAX_ERRORS:
            lines.append(f"{len(self.issues) - MAX_ERRORS} more errors were truncated")
        return "\n".join(lines)

    def _position(self, issue: Issue) -> tuple[int, int]:
        return issue.location or self.source.location(issue.offset)
