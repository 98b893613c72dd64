"""The source of a simulated Python script in parts that are short enough to be parsed at once."""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from mockube.container_runtime.simulated.shell import limits as shell_limits

from . import limits

_TOKEN: Final = re.compile(
    r"""(?P<comment>\#[^\n]*+)
    |(?P<prefix>[rRbBuUfF]{0,2})(?P<quotes>\"{3}|'{3})(?P<long>(?:[^\\"']|\\.|(?!(?P=quotes))["'])*+)(?P<end>(?P=quotes))?
    |(?P<formatted>[rR]?[fF][rR]?)?(?:"(?P<double>(?:[^"\\\n]|\\.)*+)"?|'(?P<single>(?:[^'\\\n]|\\.)*+)'?)
    |(?P<continued>\\\n)
    |(?P<line>\n(?=[^\s\#)\]}]))
    |(?P<bracket>[(\[{])
    |(?P<closing>[)\]}])
    |(?P<word>\w++)
    |(?P<other>[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)
_CONTINUING: Final = re.compile(r"(?:else|elif|except|finally)\b")
_EXPRESSION: Final = 6
"""The tokens that take as long as an expression in a formatted text."""
_PART: Final = limits.MAX_TOKENS // 2
_COUNTED_AT_ONCE: Final = 500
_MAX_NAME: Final = 200
"""The characters of a word with other letters than those of ASCII: Python brings them into order, in quadratic time."""
_OTHER_LETTERS: Final = re.compile(rf"[^\x00-\x7f]{{{_MAX_NAME}}}")


class Part(Struct, frozen=True):
    """Statements at the level of the module, behind as many lines as they have before them in the script."""

    text: str
    tokens: int


class SourceTooLong(Exception):
    """A statement is too long to be parsed at once."""


def _tokens(match: re.Match[str]) -> int:
    """Return how many tokens a part of the text counts as."""
    if match.lastgroup == "comment":
        return 0
    if match["quotes"]:
        return 1 + (_EXPRESSION * match["long"].count("{") if "f" in match["prefix"].lower() else 0)
    if match["formatted"]:
        return 1 + _EXPRESSION * (match["double"] or match["single"] or "").count("{")
    return 1


def _depth_change(match: re.Match[str]) -> int:
    return {"bracket": 1, "closing": -1}.get(match.lastgroup or "", 0)


def parts(text: str) -> Iterator[Part | None]:
    """Yield the parts; None after each few tokens, so that the caller may let others run. Raise `SourceTooLong`."""
    if len(text) > shell_limits.MAX_SCRIPT:
        raise SourceTooLong
    start = line = lines_before = tokens = depth = 0
    follows_decorator = False
    for found, match in enumerate(_TOKEN.finditer(text), 1):
        if not found % _COUNTED_AT_ONCE:
            yield None
        tokens += _tokens(match)
        if tokens > limits.MAX_TOKENS or (match["other"] and _OTHER_LETTERS.match(text, match.start())):
            raise SourceTooLong
        if match["quotes"] and not match["end"]:
            break  # The rest is this text, which does not end.
        depth = max(depth + _depth_change(match), 0)
        if match.lastgroup == "line" and not depth:
            position = match.end()
            is_start = not follows_decorator and not _CONTINUING.match(text, position)
            follows_decorator = text.startswith("@", position)
            if is_start and tokens >= _PART:
                lines_before += text.count("\n", line, start)
                line = start
                yield Part("\n" * lines_before + text[start:position], tokens)
                start, tokens = position, 0
    lines_before += text.count("\n", line, start)
    yield Part("\n" * lines_before + text[start:], tokens)
