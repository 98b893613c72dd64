"""`printf`, and the escape sequences that it shares with `echo -e`."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.messages import WordedError, message_of, usage
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    MissingArguments,
    Process,
    ProgramUsageError,
    Run,
    count_work,
    write_text,
)
from mockube.container_runtime.simulated.shell.quoting import quote_if_needed

from .dates import format_time

_ESCAPE: Final = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|0[0-7]{0,3}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|.)", re.DOTALL
)
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\033", "\\": "\\",
}  # fmt: skip
_PIECE: Final = re.compile(
    r"%(?:(%)|([-0+ #]*)([0-9]{1,6}|\*)?(?:\.([0-9]{0,6}|\*))?(?:hh|h|ll|l|j|z|t|L)?([diouxXcsbqeEfFgG]))|([^%\\]+)|(\\)|%\(([^()]*)\)T|(%)"
)
_NUMBER: Final = re.compile(r"\s*([-+]?)(0[xX][0-9a-fA-F]+|[0-9]+)")
_LIMIT: Final = 1 << 63
_PIECES_AT_ONCE: Final = 30
_SIZE_AT_ONCE: Final = 1 << 16
"""The pieces of a format, and the characters, that take the time of a command."""
_UNSAFE: Final = re.compile(r"[^\w@%+=:./-]")
"""The characters before which bash writes a backslash."""


def unescape(text: str, *, octal_needs_zero: bool = False) -> str:
    """Replace escape sequences; with `octal_needs_zero`, an octal number begins with a zero."""

    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
            return chr(number) if number < 0x110000 else match[0]
        if code[0] == "0" or (code[0] in "1234567" and not octal_needs_zero):
            return chr(int(code, 8) & 0xFF)
        return _ESCAPES.get(code, match[0])

    return _ESCAPE.sub(replace, text)


class Formatter:
    """The output of a format, which is repeated until all values are used."""

    def __init__(self, format_text: str, values: Sequence[str], process: Process | None = None) -> None:
        """With the `process` of a bash, the format may have `%(…)T`, and `%q` quotes as bash does."""
        self._format = format_text
        self._bash = process if process is not None and process.is_bash else None
        self._values = list(values)
        self._next = 0
        self._size = 0
        self._ends = False
        self.errors: list[WordedError] = []

    def texts(self) -> str:
        return "".join(self.parts())

    def parts(self) -> Iterator[str]:
        """Yield the output in parts, each of which takes about the time of a command."""
        output: list[str] = []
        size = 0
        while not self._ends:
            before = self._next
            for match in _PIECE.finditer(self._format):
                output.append(self._piece(match))
                size += len(output[-1])
                if len(output) >= _PIECES_AT_ONCE or size >= _SIZE_AT_ONCE:
                    yield "".join(output)
                    output, size = [], 0
                if self._ends:
                    break
            if self._next >= len(self._values) or self._next == before:
                break
        if output:
            yield "".join(output)

    def _value(self) -> str | None:
        self._next += 1
        return self._values[self._next - 1] if self._next <= len(self._values) else None

    def _piece(self, match: re.Match[str]) -> str:
        if match[1]:
            return "%"
        if match[8] is not None and self._bash is not None:
            return self._time(match[8], self._bash.host.now_running())
        if match[5]:
            return self._directive(match)
        if match[9] or match[8] is not None:
            directive = match.string[match.start() : match.start() + 2]
            words = f"`{directive[1:] or directive}': invalid format character"
            raise ProgramUsageError(f"{directive}: invalid directive", 2, bash=words, bash_code=1)
        return match[6] or match[7]

    def _directive(self, match: re.Match[str]) -> str:
        flags, kind = match[2], match[5]
        width = self._count(match[3])
        if width is not None and width < 0:
            flags, width = f"{flags}-", -width
        precision = self._count(match[4])
        self._size += (width or 0) + (precision or 0)
        if self._size > limits.MAX_PADDING:
            raise ProgramUsageError("the output is too long", 2)
        value = self._value()
        if kind in "sbqc":
            return self._text(value or "", kind, width or 0, precision, is_left="-" in flags)
        point = "" if precision is None else f".{precision}"
        field = "" if width is None else str(width)
        if kind in "eEfFgG":
            return f"%{flags}{field}{point}{kind}" % self._float(value or "0")
        number = self._integer(value or "0")
        if kind in "uoxX" and number < 0:
            number += 2 * _LIMIT
        flags = flags.replace("0", "") if precision is not None else flags
        return f"%{flags}{field}{point}{'d' if kind in 'diu' else kind}" % number

    def _time(self, format_text: str, now: datetime) -> str:
        """Return the time of a value, in seconds of Unix; the present time without one, or with -1."""
        seconds = self._integer(value) if (value := self._value()) else -1
        try:
            at = now if seconds < 0 else datetime.fromtimestamp(seconds, UTC)
        except (OverflowError, OSError, ValueError):
            raise ProgramUsageError(f"{seconds}: time out of range", 1) from None
        return format_time(at, format_text or "%H:%M:%S")

    def _count(self, text: str | None) -> int | None:
        """Return a width or precision, which may be a value."""
        if text is None:
            return None
        return min(self._integer(self._value() or "0"), limits.MAX_PADDING) if text == "*" else int(text or 0)

    def _text(self, value: str, kind: str, width: int, precision: int | None, *, is_left: bool) -> str:
        if kind == "b":
            before, stop, _ = value.partition("\\c")
            self._ends = bool(stop)
            value = unescape(before)
        elif kind == "q":
            value = _quote(value, is_bash=self._bash is not None)
        elif kind == "c":
            value = value[:1] or "\0"
        if precision is not None and kind != "c":
            value = value[:precision]
        return value.ljust(width) if is_left else value.rjust(width)

    def _integer(self, text: str) -> int:
        if text[:1] in ("'", '"'):
            return ord(text[1]) if len(text) > 1 else 0
        match = _NUMBER.match(text)
        if match is None or match.end() < len(text):
            problem = "expected numeric value" if match is None else "not completely converted"
            self._add_error(text, problem)
        if match is None:
            return 0
        digits = match[2]
        base = 16 if digits[:2] in ("0x", "0X") else 8 if digits.startswith("0") else 10
        try:
            number = int(digits[:70], base)
        except ValueError:
            self._add_error(text, "not completely converted")
            return 0
        number = -number if match[1] == "-" else number
        return max(min(number, _LIMIT - 1), -_LIMIT)

    def _float(self, text: str) -> float:
        try:
            return float(int(text, 16)) if text[:2] in ("0x", "0X") else float(text)
        except ValueError:
            self._add_error(text, "expected numeric value")
            return 0.0

    def _add_error(self, text: str, problem: str) -> None:
        self.errors.append(WordedError(f"{text}: {problem}", f"{text}: invalid number"))


def _quote(text: str, *, is_bash: bool) -> str:
    if not text:
        return "''"
    if not is_bash or not text.isprintable():
        return quote_if_needed(text)
    return _UNSAFE.sub(r"\\\g<0>", text)


def printf(process: Process) -> Run:
    arguments = list(process.arguments)
    if arguments[:1] == ["--"]:
        arguments.pop(0)
    elif process.place and arguments and len(arguments[0]) > 1 and arguments[0].startswith("-"):
        letter = arguments[0][1]
        words = f"-{letter}: invalid option\n{usage('printf')}"
        raise ProgramUsageError(f"Illegal option -{letter}", 2, bash=words)
    if not arguments:
        raise MissingArguments("usage: printf format [arg ...]", 2)
    formatter = Formatter(unescape(arguments[0]), arguments[1:], process)
    for part in formatter.parts():
        yield from count_work(len(part), _SIZE_AT_ONCE)
        yield CommandStart()
        yield write_text(part)
    for error in formatter.errors:
        yield process.error(message_of(error, is_bash=process.is_bash))
    return int(bool(formatter.errors))
