"""The lexer. A token is the longest match, as in the grammar of CEL; text that matches no token is an error, and is skipped."""

import re
from typing import NamedTuple

from .source import Issue

EOF = "<EOF>"
IDENTIFIER, ESCAPED, _SKIP = "IDENTIFIER", "ESC_IDENTIFIER", "SKIP"
_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = "|".join(
    [
        *(rf"[rR]{quote * 3}[\s\S]*?{quote * 3}" for quote in "\"'"),
        *(rf"[rR]{quote}[^{quote}\n\r]*{quote}" for quote in "\"'"),
        *(rf"{quote * 3}(?:{_ESCAPE}|[^\\])*?{quote * 3}" for quote in "\"'"),
        *(rf"{quote}(?:{_ESCAPE}|[^\\{quote}\n\r])*{quote}" for quote in "\"'"),
    ]
)
_TOKEN = re.compile(
    rf"""(?P<SKIP>[\t \r\n\f]+|//[^\n]*)
    |(?P<BYTES>[bB](?:{_STRING}))
    |(?P<STRING>{_STRING})
    |(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
    |(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<OPERATOR>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
_PARTIAL_ESCAPE = re.compile(r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?")
_PARTIAL = {
    **{
        quote: re.compile(rf"{quote}(?:{_ESCAPE}|[^\\{quote}\n\r])*(?:{_PARTIAL_ESCAPE.pattern})?")
        for quote in "\"'"
    },
    "`": re.compile(r"`[A-Za-z0-9_.\-/ ]*"),
    **{char: re.compile(re.escape(char)) for char in "&|="},
}
"""The text that the lexer consumes of an incomplete token, up to the first character that does not match."""


class Token(NamedTuple):
    kind: str
    """The class of the token, such as STRING, or its text, such as `==`."""
    text: str
    start: int
    position: int = 0
    """Not set by the lexer."""


SKIPPED = re.compile(r"[\t \r\n\f]+|//[^\n]*")
"""Whitespace and comments between tokens."""


def tokenize(text: str) -> tuple[list[Token], list[Issue]]:
    """Return the tokens, with EOF at the end, and the errors."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    offset = 0
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            offset = _skip_error(text, offset, issues)
            continue
        kind = match.lastgroup or ""
        if kind != _SKIP:
            value = match.group()
            tokens.append(Token(_kind(kind, value), value, offset))
        offset = match.end()
    tokens.append(Token(EOF, EOF, len(text)))
    return tokens, issues


def _kind(group: str, text: str) -> str:
    return text if group == "OPERATOR" or (group == IDENTIFIER and text in _KEYWORDS) else group


def _skip_error(text: str, offset: int, issues: list[Issue]) -> int:
    partial = _PARTIAL.get(text[offset])
    read = partial.match(text, offset) if partial else None
    end = read.end() if read else offset
    issues.append(Issue(offset, f"Syntax error: token recognition error at: '{text[offset : end + 1]}'"))
    return end + 1
