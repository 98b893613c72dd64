"""The permissions of files, as arguments and as texts."""

import re
from typing import Final

from mockube.container_runtime.simulated.shell.process import ProgramUsageError

_BITS: Final = "rwxrwxrwx"
_CLAUSE: Final = re.compile(r"([ugoa]*)((?:[-+=][rwxXstugo]*)+)")
_ACTION: Final = re.compile(r"([-+=])([rwxXstugo]*)")
_WHO: Final = {"u": 0o4700, "g": 0o2070, "o": 0o1007}
_PERMISSIONS: Final = {"r": 0o444, "w": 0o222, "x": 0o111, "s": 0o6000, "t": 0o1000}


def parse_mode(text: str, before: int, *, is_directory: bool = False) -> int:
    """Return the permissions that an octal or symbolic mode makes of others; raise `ProgramUsageError`."""
    if text.isdecimal() and len(text) <= 5 and not set(text) & {"8", "9"}:
        return int(text, 8) & 0o7777
    mode = before
    for clause in text.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ProgramUsageError(f"invalid mode '{text}'")
        owners = match[1].replace("a", "ugo") or "ugo"
        mask = 0
        for letter in owners:
            mask |= _WHO[letter]
        for operator, letters in _ACTION.findall(match[2]):
            bits = _bits(letters, mode, is_directory=is_directory) & mask
            if operator == "=":
                mode &= ~mask | 0o7000
            mode = mode & ~bits if operator == "-" else mode | bits
    return mode


def _bits(letters: str, mode: int, *, is_directory: bool) -> int:
    bits = 0
    for letter in letters:
        if letter == "X":
            bits |= 0o111 if is_directory or mode & 0o111 else 0
        elif letter in "ugo":
            shift = {"u": 6, "g": 3, "o": 0}[letter]
            bits |= (mode >> shift & 7) * 0o111
        else:
            bits |= _PERMISSIONS[letter]
    return bits


def permissions_text(mode: int) -> str:
    """Return permissions as `ls -l` shows them."""
    letters = [letter if mode >> (8 - index) & 1 else "-" for index, letter in enumerate(_BITS)]
    for index, (bit, letter) in {2: (0o4000, "s"), 5: (0o2000, "s"), 8: (0o1000, "t")}.items():
        if mode & bit:
            letters[index] = letter if letters[index] == "x" else letter.upper()
    return "".join(letters)


def symbolic_rights(mode: int) -> str:
    """Return rights as `umask -S` prints them, such as `u=rwx,g=rx,o=rx`."""
    text = permissions_text(mode)
    return ",".join(f"{owner}={text[index * 3 :][:3].replace('-', '')}" for index, owner in enumerate("ugo"))
