"""The journal of a node: its entries, which of them a query selects, and how they are printed. Pure."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.captures import CapturingPattern
from mockube.apimachinery.regexp.perl import perl_pattern

_MAX_PATTERN_COST: Final = 5_000
"""The maximum size of a pattern's program: each entry of a journal is searched."""
ERROR_PRIORITY: Final = 3
INFO_PRIORITY: Final = 6
PRIORITIES: Final = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
_RELATIVE: Final = re.compile(
    r"(?:-?\s*)([0-9]{1,9})\s*(s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|w|weeks?)(?:\s+ago)?"
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_FORMATS: Final = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S",
)
_TIMES: Final = ("%H:%M:%S", "%H:%M")


class JournalEntry(Struct, frozen=True, kw_only=True):
    at: datetime
    unit: str
    """The systemd unit, such as kubelet.service."""
    identifier: str
    """The name of the program: kubelet, or systemd about the unit."""
    pid: int
    text: str
    priority: int = INFO_PRIORITY


class JournalQuery(Struct, kw_only=True):
    units: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    lines: int | None = None
    grep: str = ""
    """A regular expression that PCRE2 accepts; one that `grep_pattern` does not support matches nothing."""
    priority: int = 7
    identifiers: Sequence[str] = ()


class BadTime(ValueError):
    """A time of a query cannot be read."""


def unit_name(name: str) -> str:
    """Return the full name of a unit: a name without a suffix is a service."""
    return name if "." in name else f"{name}.service"


@memoize(64, max_length=300)
def grep_pattern(text: str) -> CapturingPattern | None:
    """Return a pattern; None for one whose syntax is not supported. Raise `PerlPatternError` for an invalid one."""
    # A pattern in small letters ignores the case, as that of journalctl.
    return perl_pattern(text, ignores_case=text.islower(), max_cost=_MAX_PATTERN_COST)


def select(entries: Iterable[JournalEntry], query: JournalQuery) -> list[JournalEntry]:
    """Return the entries of a query in the order of time."""
    units = {*map(unit_name, query.units)}
    pattern = grep_pattern(query.grep)
    found = [
        entry
        for entry in entries
        if (not units or entry.unit in units)
        and (query.since is None or entry.at >= query.since)
        and (query.until is None or entry.at <= query.until)
        and entry.priority <= query.priority
        and (not query.identifiers or entry.identifier in query.identifiers)
        and (not query.grep or (pattern is not None and pattern.search(entry.text) is not None))
    ]
    return found if query.lines is None else found[max(len(found) - query.lines, 0) :]


def parse_time(text: str, now: datetime) -> datetime:
    """Return a time as systemd reads it, such as `10 min ago`, `today` or `2026-01-01 12:00`; raise `BadTime`."""
    text = text.strip()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    words = {
        "now": now,
        "today": midnight,
        "yesterday": midnight - timedelta(days=1),
        "tomorrow": midnight + timedelta(days=1),
    }
    if text in words:
        return words[text]
    if (match := _RELATIVE.fullmatch(text)) and ("ago" in text or text.startswith("-")):
        return now - timedelta(seconds=int(match[1]) * _SECONDS[match[2][0]])
    if text.startswith("@") and text[1:].isdecimal() and len(text) < 12:
        return datetime.fromtimestamp(int(text[1:]), UTC)
    for form in _FORMATS:
        try:
            parsed = datetime.strptime(text.replace(" UTC", "").replace("Z", "+0000"), form)  # noqa: DTZ007 - the zone follows
        except ValueError:
            continue
        return parsed.replace(tzinfo=parsed.tzinfo or UTC)
    for form in _TIMES:
        try:
            parsed = datetime.strptime(text, form)  # noqa: DTZ007 - as above
        except ValueError:
            continue
        return midnight.replace(hour=parsed.hour, minute=parsed.minute, second=parsed.second)
    raise BadTime(text)


def _time_short(at: datetime) -> str:
    return f"{at:%b %d %H:%M:%S}"


_TIME_FORMATS: Final[dict[str, Callable[[datetime], str]]] = {
    "short": _time_short,
    "short-precise": lambda at: f"{at:%b %d %H:%M:%S.%f}",
    "short-iso": lambda at: f"{at:%Y-%m-%dT%H:%M:%S}+00:00",
    "short-iso-precise": lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%f}+00:00",
    "short-full": lambda at: f"{at:%a %Y-%m-%d %H:%M:%S} UTC",
    "short-unix": lambda at: f"{at.timestamp():.6f}",
    "with-unit": lambda at: f"{at:%a %Y-%m-%d %H:%M:%S} UTC",
}
FORMATS: Final = (*_TIME_FORMATS, "cat", "json", "json-pretty")


def line_of(entry: JournalEntry, host: str, form: str = "short") -> str:
    """Return an entry as journalctl prints it."""
    if form == "cat":
        return entry.text
    if form in ("json", "json-pretty"):
        encoded = msgspec.json.encode(_fields(entry, host))
        return (encoded if form == "json" else msgspec.json.format(encoded, indent=8)).decode()
    source = entry.unit if form == "with-unit" else entry.identifier
    return f"{_TIME_FORMATS[form](entry.at)} {host} {source}[{entry.pid}]: {entry.text}"


def _fields(entry: JournalEntry, host: str) -> dict[str, Any]:
    return {
        "__REALTIME_TIMESTAMP": str(round(entry.at.timestamp() * 1_000_000)),
        "_HOSTNAME": host,
        "_SYSTEMD_UNIT": "init.scope" if entry.pid == 1 else entry.unit,
        "UNIT": entry.unit,
        "SYSLOG_IDENTIFIER": entry.identifier,
        "_PID": str(entry.pid),
        "PRIORITY": str(entry.priority),
        "MESSAGE": entry.text,
    }
