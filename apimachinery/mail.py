"""Whether a text is one mail address, as Go's `mail.ParseAddress` decides (RFC 5322)."""

import re
from ipaddress import ip_address
from typing import Final

_SPACES: Final = re.compile(r"[ \t]*")
# By what they may not contain: to name all of Unicode makes Python compile for 30 ms.
_ATOM: Final = re.compile(r'[^\x00- "(),:;<>@\[\\\]\x7f]+')
_QUOTED: Final = re.compile(r'"(?:[^\x00-\x08\n-\x1f"\\\x7f]|\\[^\x00-\x08\n-\x1f\x7f])*+"')
_LITERAL: Final = re.compile(r"\[([^\x00- \[\\\]\x7f]*+)\]")
_COMMENT_PART: Final = re.compile(r"[^\\()]++|\\.|\\\Z|[()]", re.DOTALL)


class _NoAddress(Exception):
    """The text does not have what is needed at a position."""


def is_mail_address(text: str) -> bool:
    try:
        end, count = _address(text, 0, may_be_group=True)
        return _skip_comments(text, end) == len(text) and count == 1
    except _NoAddress:
        return False


def _address(text: str, at: int, *, may_be_group: bool) -> tuple[int, int]:
    """The end of an address or a group, and the number of addresses in it."""
    at = _skip_spaces(text, at)
    if at == len(text):
        raise _NoAddress
    try:
        return _with_comment(text, _specification(text, at)), 1
    except _NoAddress:
        at = _skip_display_name(text, at)
    at = _skip_spaces(text, at)
    if may_be_group and text.startswith(":", at):
        return _group(text, at + 1)
    at = _specification(text, _skip_character("<", text, at))
    return _skip_character(">", text, at), 1


def _skip_display_name(text: str, at: int) -> int:
    return at if text.startswith("<", at) else _skip_phrase(text, at)


def _with_comment(text: str, at: int) -> int:
    at = _skip_spaces(text, at)
    return _comment(text, at + 1) if text.startswith("(", at) else at


def _group(text: str, at: int) -> tuple[int, int]:
    at, count = _skip_spaces(text, at), 0
    if text.startswith(";", at):
        return _skip_comments(text, at + 1), 0
    while True:
        at, added = _address(text, _skip_spaces(text, at), may_be_group=False)
        count += added
        at = _skip_comments(text, at)
        if text.startswith(";", at):
            return _skip_comments(text, at + 1), count
        at = _skip_character(",", text, at)


def _specification(text: str, at: int) -> int:
    """The end of `local@domain`."""
    at = _skip_spaces(text, at)
    if text.startswith('"', at):
        end = _match_end(_QUOTED, text, at)
        if end == at + 2:
            raise _NoAddress
    else:
        end = _dot_atom(text, at)
    at = _skip_spaces(text, _skip_character("@", text, end))
    return _domain_literal(text, at) if text.startswith("[", at) else _dot_atom(text, at)


def _domain_literal(text: str, at: int) -> int:
    match = _LITERAL.match(text, at)
    if match is None or "%" in match[1]:
        raise _NoAddress
    try:
        ip_address(match[1])
    except ValueError:
        raise _NoAddress from None
    return match.end()


def _dot_atom(text: str, at: int) -> int:
    end = _match_end(_ATOM, text, at)
    atom = text[at:end]
    if atom.startswith(".") or atom.endswith(".") or ".." in atom:
        raise _NoAddress
    return end


def _skip_phrase(text: str, at: int) -> int:
    """The end of the words before an address; a name may begin with dots and have several in a row."""
    at = _skip_word(text, _skip_spaces(text, at))
    while True:
        at = _skip_spaces(text, _skip_comments(text, at))
        try:
            at = _skip_word(text, at)
        except _NoAddress:
            return at


def _skip_word(text: str, at: int) -> int:
    return _match_end(_QUOTED if text.startswith('"', at) else _ATOM, text, at)


def _comment(text: str, at: int) -> int:
    """The end of a comment whose parenthesis is open."""
    depth = 1
    while depth:
        match = _COMMENT_PART.match(text, at)
        if match is None:
            raise _NoAddress
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        at = match.end()
    return at


def _skip_comments(text: str, at: int) -> int:
    at = _skip_spaces(text, at)
    while text.startswith("(", at):
        at = _skip_spaces(text, _comment(text, at + 1))
    return at


def _skip_spaces(text: str, at: int) -> int:
    return _match_end(_SPACES, text, at)


def _skip_character(character: str, text: str, at: int) -> int:
    if not text.startswith(character, at):
        raise _NoAddress
    return at + 1


def _match_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    if match is None:
        raise _NoAddress
    return match.end()
