"""`date`, and the format of times."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from mockube.container_runtime.simulated.shell.options import parse_options
from mockube.container_runtime.simulated.shell.process import (
    Process,
    Program,
    ProgramUsageError,
    Run,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.streams import ContainerStream
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

_DIRECTIVE: Final = re.compile(r"%([-_0^]?)([0-9]?)([A-Za-z%])")
_ZONE: Final = re.compile(r"(?:Z|UTC|GMT|[+-]00:?00)$")
_FORMATS: Final = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d",
    "%H:%M:%S",
    "%H:%M",
    "%Y%m%d",
)
_RELATIVE: Final = re.compile(
    r"([+-]?\s*[0-9]{1,9})?\s*(second|sec|minute|min|hour|day|week|month|year)s?(\s+ago)?", re.IGNORECASE
)
_SECONDS: Final = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "day": 86400, "week": 604800}
_NAMES: Final = {"yesterday": -86400, "tomorrow": 86400, "now": 0, "today": 0}


def format_time(when: datetime, format_text: str) -> str:
    """Return a time in the format of `date`; the time zone is UTC."""

    def directive(match: re.Match[str]) -> str:
        flag, width, letter = match.groups()
        if letter == "N":
            text = f"{when.microsecond * 1000:09}"
            return text[: int(width)] if width else text
        fixed = {
            "s": str(int(when.timestamp())), "Z": "UTC", "z": "+0000", "n": "\n", "t": "\t", "%": "%", "P": f"{when:%p}".lower(), "e": f"{when.day:2}",
            "k": f"{when.hour:2}", "l": f"{(when.hour - 1) % 12 + 1:2}", "F": f"{when:%Y-%m-%d}", "T": f"{when:%H:%M:%S}", "D": f"{when:%m/%d/%y}",
            "R": f"{when:%H:%M}", "r": f"{when:%I:%M:%S %p}", "c": f"{when:%a %b} {when.day:2} {when:%H:%M:%S %Y}", "x": f"{when:%m/%d/%y}", "X": f"{when:%H:%M:%S}", "h": f"{when:%b}",
            "C": f"{when.year // 100:02}", "q": str((when.month + 2) // 3), "Y": f"{when.year:04}",
        }  # fmt: skip
        text = fixed.get(letter) or (
            when.strftime(f"%{letter}") if letter in "aAbBdgGHIjmMpSuUVwWyY" else match[0]
        )
        if flag == "-":
            return text.lstrip("0 ") or "0"
        if flag == "_":
            return text.lstrip("0").rjust(len(text))
        return text.upper() if flag == "^" else text

    return _DIRECTIVE.sub(directive, format_text)


def _refuse_to_set(process: Process) -> None:
    """Raise what date says that sets the clock, which is that of the node."""
    if process.host.files.rights.user.has("SYS_TIME"):
        raise UnknownProgram("date -s")
    raise ProgramUsageError("can't set date: Operation not permitted")


def date(process: Process) -> Run:
    options = parse_options(
        [f"{text}date" if text == "-I" else text for text in process.arguments],
        "uRd:r:D:s:I:",
        long={"utc": "u", "universal": "u", "date": "d", "reference": "r", "rfc-2822": "R", "rfc-email": "R"},
    )
    if "s" in options:
        _refuse_to_set(process)
    is_shown = isinstance(process.descriptors.get(1), ContainerStream)
    when = process.host.now_running(is_shown=is_shown)
    if "r" in options:
        try:
            modified = process.host.files.entry(process.path(options.get("r"))).modified
        except FileError as error:
            raise ProgramUsageError(f"{options.get('r')}: {error}") from error
        when = datetime.fromtimestamp(modified, UTC)
    if "d" in options:
        when = parse_time_text(options.get("d"), when, options.get("D"))
    format_text = "%a %b %e %H:%M:%S UTC %Y"
    if "R" in options:
        format_text = "%a, %d %b %Y %H:%M:%S +0000"
    if "I" in options:
        format_text = _ISO.get(options.get("I"), "")
        if not format_text:
            raise ProgramUsageError(f"invalid argument '{options.get('I')}' for -I")
    for argument in options.arguments:
        if not argument.startswith("+"):
            raise ProgramUsageError(f"invalid date '{argument}'")
        format_text = argument[1:]
    yield write_text(format_time(when, format_text) + "\n")
    return 0


_ISO: Final = {
    "": "%Y-%m-%d", "date": "%Y-%m-%d", "hours": "%Y-%m-%dT%H+00:00", "minutes": "%Y-%m-%dT%H:%M+00:00",
    "seconds": "%Y-%m-%dT%H:%M:%S+00:00", "s": "%Y-%m-%dT%H:%M:%S+00:00", "ns": "%Y-%m-%dT%H:%M:%S,%N+00:00",
}  # fmt: skip


def parse_time_text(text: str, now: datetime, format_text: str = "") -> datetime:
    """Parse the argument of `date -d`; raise `ProgramUsageError`."""
    try:
        if format_text:
            return datetime.strptime(text, format_text).replace(tzinfo=UTC)
        if text.startswith("@"):
            return datetime.fromtimestamp(int(text[1:].partition(".")[0]), UTC)
        return _parse(text.strip(), now)
    except (ValueError, OverflowError, OSError):
        raise ProgramUsageError(f"invalid date '{text}'") from None


_STAMP: Final = re.compile(r"([0-9]{2})?([0-9]{2})?([0-9]{8})(?:\.([0-9]{2}))?")


def parse_stamp(text: str, now: datetime) -> datetime:
    """Parse the argument of `touch -t`, [[CC]YY]MMDDhhmm[.ss]; raise `ProgramUsageError`."""
    match = _STAMP.fullmatch(text)
    if match is None:
        raise ProgramUsageError(f"invalid date '{text}'")
    try:
        century, year, rest, seconds = match.groups()
        century, year = (None, century) if year is None else (century, year)
        full_year = f"{now.year:04}" if year is None else (century or ("19" if year > "68" else "20")) + year
        return datetime.strptime(full_year + rest + (seconds or "00"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise ProgramUsageError(f"invalid date '{text}'") from None


def _parse(text: str, now: datetime) -> datetime:
    if text in _NAMES:
        return now + timedelta(seconds=_NAMES[text])
    relative = _RELATIVE.fullmatch(text)
    if relative:
        count = int((relative[1] or "1").replace(" ", "")) * (-1 if relative[3] else 1)
        unit = relative[2].lower()
        if unit in _SECONDS:
            return now + timedelta(seconds=count * _SECONDS[unit])
        months = now.year * 12 + now.month - 1 + count * (12 if unit == "year" else 1)
        return now.replace(year=months // 12, month=months % 12 + 1)
    plain = _ZONE.sub("", text).partition(".")[0].strip()
    for layout in _FORMATS:
        try:
            parsed = datetime.strptime(plain, layout).replace(tzinfo=UTC)
        except ValueError:
            continue
        return parsed if "%Y" in layout else parsed.replace(year=now.year, month=now.month, day=now.day)
    raise ValueError(text)


PROGRAMS: Final[Mapping[str, Program]] = {"date": date}
