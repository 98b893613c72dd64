"""Validation of mail addresses (RFC 5322), as by Go's `mail.ParseAddress`."""

import re
from ipaddress import ip_address
from typing import Final

_SPACES: Final = re.compile(r"[ \t]*")
# The patterns exclude characters: one that lists all of Unicode takes Python 30 ms to compile.
_ATOM: Final = re.compile(r'[^\x00- "(),:;<>@\[\\\]\x7f]+')
_QUOTED: Final = re.compile(r'"(?:[^\x00-\x08\n-\x1f"\\\x7f]|\\[^\x00-\x08\n-\x1f\x7f])*+"')
_LITERAL: Final = re.compile(r"\[([^\x00- \[\\\]\x7f]*+)\]")
_COMMENT_PART: Final = re.compile(r"[^\\()]++|\\.|\\\Z|[()]", re.DOTALL)


class _NoAddress(Exception):
    """The text does not have the expected form at a position."""


def is_mail_address(text: str) -> bool:
    """Return whether a text is exactly one address."""
    try:
        end, count = _address(text, 0, may_be_group=True)
        return _skip_comments(text, end) == len(text) and count == 1
    except _NoAddress:
        return False


def _address(text: str, position: int, *, may_be_group: bool) -> tuple[int, int]:
    """Parse an address or a group; return its end and the number of its addresses."""
    position = _skip_spaces(text, position)
    if position == len(text):
        raise _NoAddress
    try:
        return _with_comment(text, _specification(text, position)), 1
    except _NoAddress:
        position = _skip_display_name(text, position)
    position = _skip_spaces(text, position)
    if may_be_group and text.startswith(":", position):
        return _group(text, position + 1)
    position = _specification(text, _skip_character("<", text, position))
    return _skip_character(">", text, position), 1


def _skip_display_name(text: str, position: int) -> int:
    return position if text.startswith("<", position) else _skip_phrase(text, position)


def _with_comment(text: str, position: int) -> int:
    position = _skip_spaces(text, position)
    return _comment(text, position + 1) if text.startswith("(", position) else position


def _group(text: str, position: int) -> tuple[int, int]:
    position, count = _skip_spaces(text, position), 0
    if text.startswith(";", position):
        return _skip_comments(text, position + 1), 0
    while True:
        position, added = _address(text, _skip_spaces(text, position), may_be_group=False)
        count += added
        position = _skip_comments(text, position)
        if text.startswith(";", position):
            return _skip_comments(text, position + 1), count
        position = _skip_character(",", text, position)


def _specification(text: str, position: int) -> int:
    """Return the end of `local@domain`."""
    position = _skip_spaces(text, position)
    if text.startswith('"', position):
        end = _match_end(_QUOTED, text, position)
        if end == position + 2:
            raise _NoAddress
    else:
        end = _dot_atom(text, position)
    position = _skip_spaces(text, _skip_character("@", text, end))
    return _domain_literal(text, position) if text.startswith("[", position) else _dot_atom(text, position)


def _domain_literal(text: str, position: int) -> int:
    match = _LITERAL.match(text, position)
    if match is None or "%" in match[1]:
        raise _NoAddress
    try:
        ip_address(match[1])
    except ValueError:
        raise _NoAddress from None
    return match.end()


def _dot_atom(text: str, position: int) -> int:
    end = _match_end(_ATOM, text, position)
    atom = text[position:end]
    if atom.startswith(".") or atom.endswith(".") or ".." in atom:
        raise _NoAddress
    return end


def _skip_phrase(text: str, position: int) -> int:
    """Return the end of a phrase, the words before an address; it may begin with dots and have several in a row."""
    position = _skip_word(text, _skip_spaces(text, position))
    while True:
        position = _skip_spaces(text, _skip_comments(text, position))
        try:
            position = _skip_word(text, position)
        except _NoAddress:
            return position


def _skip_word(text: str, position: int) -> int:
    return _match_end(_QUOTED if text.startswith('"', position) else _ATOM, text, position)


def _comment(text: str, position: int) -> int:
    """Return the end of a comment that is open at the position."""
    depth = 1
    while depth:
        match = _COMMENT_PART.match(text, position)
        if match is None:
            raise _NoAddress
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        position = match.end()
    return position


def _skip_comments(text: str, position: int) -> int:
    position = _skip_spaces(text, position)
    while text.startswith("(", position):
        position = _skip_spaces(text, _comment(text, position + 1))
    return position


def _skip_spaces(text: str, position: int) -> int:
    return _match_end(_SPACES, text, position)


def _skip_character(character: str, text: str, position: int) -> int:
    if not text.startswith(character, position):
        raise _NoAddress
    return position + 1


def _match_end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    if match is None:
        raise _NoAddress
    return match.end()
