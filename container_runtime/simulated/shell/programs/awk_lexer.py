"""The tokens of awk's programs, and the nodes of their syntax tree."""

import re
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.container_runtime.simulated.shell import limits

_SPACE: Final = re.compile(r"(?:[ \t\r]|\\\r?\n|#[^\n]*)*")
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]+|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR: Final = re.compile(r"\*\*=|\*\*|&&|\|\||\+\+|--|>>|[-+*/%^!<>=]=|!~|[-+*/%^!<>=~?:,;(){}\[\]$|\n]")
_ESCAPE: Final = re.compile(r"\\(\n|[0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"', "/": "/", "\n": "",
}  # fmt: skip
KEYWORDS: Final = frozenset(
    [
        "BEGIN",
        "END",
        "function",
        "func",
        "if",
        "else",
        "while",
        "for",
        "do",
        "break",
        "continue",
        "next",
        "nextfile",
        "exit",
        "return",
        "delete",
        "in",
        "getline",
        "print",
        "printf",
    ]
)
FUNCTIONS: Final = frozenset(
    [
        "length",
        "substr",
        "index",
        "split",
        "sub",
        "gsub",
        "match",
        "sprintf",
        "sin",
        "cos",
        "atan2",
        "exp",
        "log",
        "sqrt",
        "int",
        "rand",
        "srand",
        "tolower",
        "toupper",
        "system",
        "close",
        "fflush",
        "strftime",
        "systime",
        "mktime",
        "gensub",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
        "compl",
    ]
)
_OPERAND_ENDS: Final = frozenset([")", "]", "$", "++", "--"])


class AwkError(Exception):
    """A program is invalid, or a limit is exceeded."""


class AwkToken(NamedTuple):
    kind: str
    """`number`, `string`, `regex`, `name`, `call` (a name before a parenthesis), `function`, `keyword`, `operator` or `end`."""
    text: str


class AwkNode(Struct, frozen=True):
    """An expression or a statement."""

    kind: str
    text: str = ""
    nodes: "tuple[AwkNode, ...]" = ()


def tokenize(text: str) -> list[AwkToken]:
    if len(text) > limits.MAX_AWK_PROGRAM:
        raise AwkError("the program is too long")
    tokens: list[AwkToken] = []
    position = 0
    while True:
        space = _SPACE.match(text, position)
        assert space is not None
        position = space.end()
        if position >= len(text):
            return [*tokens, AwkToken("operator", "\n"), AwkToken("end", "")]
        token, position = _token(text, position, tokens[-1] if tokens else None)
        tokens.append(token)


def _token(text: str, position: int, last: AwkToken | None) -> tuple[AwkToken, int]:
    char = text[position]
    number = _NUMBER.match(text, position)
    if number:
        return AwkToken("number", number[0]), number.end()
    name = _NAME.match(text, position)
    if name:
        kind = "keyword" if name[0] in KEYWORDS else "function" if name[0] in FUNCTIONS else "name"
        if kind == "name" and text.startswith("(", name.end()):
            kind = "call"
        return AwkToken(kind, name[0]), name.end()
    if char == '"':
        return _string(text, position)
    if char == "/" and not _ends_operand(last):
        return _regex(text, position)
    operator = _OPERATOR.match(text, position)
    if operator is None:
        raise AwkError(f"syntax error at {text[position : position + 20]!r}")
    return AwkToken("operator", operator[0].replace("**", "^")), operator.end()


def _ends_operand(token: AwkToken | None) -> bool:
    return token is not None and (
        token.kind in ("number", "string", "name", "regex", "function")
        or (token.kind == "operator" and token.text in _OPERAND_ENDS)
    )


def _string(text: str, position: int) -> tuple[AwkToken, int]:
    end = position + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        raise AwkError("unterminated string")
    return AwkToken("string", unescape(text[position + 1 : end])), end + 1


def unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        return _ESCAPES.get(code, match[0])

    return _ESCAPE.sub(replace, text)


def _regex(text: str, position: int) -> tuple[AwkToken, int]:
    end = position + 1
    in_bracket = False
    while end < len(text) and (text[end] != "/" or in_bracket):
        if text[end] == "\n":
            break
        if text[end] == "\\":
            end += 1
        elif text[end] == "[":
            in_bracket = True
        elif text[end] == "]":
            in_bracket = False
        end += 1
    if end >= len(text) or text[end] == "\n":
        raise AwkError("unterminated regex")
    return AwkToken("regex", text[position + 1 : end].replace("\\/", "/")), end + 1
