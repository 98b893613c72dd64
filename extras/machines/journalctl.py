"""journalctl: the journal of a node, which says what its kubelet and its container runtime have done."""

import re
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from mockube.apimachinery.regexp.perl import PerlPatternError
from mockube.container_runtime import node_journal
from mockube.container_runtime.node_journal import BadTime, JournalEntry, JournalQuery
from mockube.container_runtime.simulated.node.services import ServiceError, ask
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Process,
    ProgramUsageError,
    Run,
    Sleep,
    write_text,
)

Entries = Generator[Effect, bytes | None, list[JournalEntry]]
_FOLLOW_SECONDS: Final = 1.0
_SHOWN: Final = 10
_BOOT: Final = re.compile(r"[-+]?[0-9]{1,4}")
_MAX_DIGITS: Final = 9
_LONG: Final = {
    "unit": "u", "lines": "n", "follow": "f", "since": "S", "until": "U", "output": "o", "no-pager": "P", "reverse": "r", "pager-end": "e",
    "catalog": "x", "boot": "b", "priority": "p", "grep": "g", "identifier": "t", "quiet": "q", "utc": "Z", "dmesg": "k", "field": "F",
    "list-boots": "B", "no-full": "P", "full": "l", "all": "a", "no-hostname": "H", "no-tail": "T", "disk-usage": "D", "fields": "N",
}  # fmt: skip


def journalctl(process: Process) -> Run:
    options = parse_options(
        [*_with_boots(process.arguments)], "u:n:fS:U:o:PreZxb:p:g:t:qkF:lBaHTDN", long=_LONG
    )
    try:
        if "F" in options:
            return (yield from _print_field(process, options.get("F")))
        if "B" in options:
            yield write_text("IDX BOOT ID                          FIRST ENTRY                 LAST ENTRY\n")
            return 0
        return (yield from _print_entries(process, options))
    except ServiceError as error:
        yield process.report(str(error))
        return 1


def _with_boots(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments, with a value for each `-b`: a number behind it, or else the present boot."""
    remaining = deque(arguments)
    while remaining:
        argument = remaining.popleft()
        if argument not in ("-b", "--boot"):
            yield argument
            continue
        has_number = bool(remaining) and _BOOT.fullmatch(remaining[0]) is not None
        yield f"--boot={remaining.popleft() if has_number else 0}"


def _print_field(process: Process, field: str) -> Run:
    entries = yield from _entries(process)
    units = sorted({entry.unit for entry in entries}) if field in ("_SYSTEMD_UNIT", "UNIT") else []
    yield write_text("".join(f"{unit}\n" for unit in units))
    return 0


def _entries(process: Process) -> Entries:
    answer = yield from ask(process, "journal")
    return msgspec.convert(answer, list[JournalEntry])


def _print_entries(process: Process, options: ProgramOptions) -> Run:
    query = _query(process, options)
    form = options.get("o", "short")
    if form not in node_journal.FORMATS:
        raise ProgramUsageError(f"Unknown output format '{form}'.")
    is_other_boot = options.get("b", "0") not in ("0", "-0") or "k" in options
    entries: list[JournalEntry] = [] if is_other_boot else (yield from _entries(process))
    found = node_journal.select(entries, query)
    if "r" in options:
        found.reverse()
    if not found and "f" not in options and "q" not in options:
        yield write_text("-- No entries --\n")
        return 0
    host = process.host.name
    yield write_text("".join(f"{node_journal.line_of(entry, host, form)}\n" for entry in found))
    query.lines = None
    known = {*node_journal.select(entries, query)}
    while "f" in options:
        yield Sleep(_FOLLOW_SECONDS)
        present = node_journal.select((yield from _entries(process)), query)
        new = [entry for entry in present if entry not in known]
        yield write_text("".join(f"{node_journal.line_of(entry, host, form)}\n" for entry in new))
        known = {*present}
    return 0


def _query(process: Process, options: ProgramOptions) -> JournalQuery:
    now = process.host.now_running(is_shown=True).astimezone(UTC)
    lines: int | None = _SHOWN if "f" in options and "T" not in options else None
    if (count := options.get("n")) and count != "all":
        if not count.isdecimal() or len(count) > _MAX_DIGITS:
            raise ProgramUsageError(f"Failed to parse lines '{count}'")
        lines = int(count)
    priority = options.get("p", "7").rpartition("..")[2]
    if priority not in node_journal.PRIORITIES and priority not in "01234567":
        raise ProgramUsageError(f"Unknown log level {priority}")
    number = node_journal.PRIORITIES.index(priority) if priority in node_journal.PRIORITIES else int(priority)
    _check_pattern(options.get("g"))
    return JournalQuery(
        units=options.all("u"),
        since=_time(options.get("S"), now),
        until=_time(options.get("U"), now),
        lines=lines,
        grep=options.get("g"),
        priority=number,
        identifiers=options.all("t"),
    )


def _check_pattern(text: str) -> None:
    try:
        is_supported = node_journal.grep_pattern(text) is not None
    except PerlPatternError as error:
        raise ProgramUsageError(f'Bad pattern "{text}": {error}') from error
    if not is_supported:
        raise ProgramUsageError(f'mockube: journalctl cannot match the pattern "{text}" in linear time')


def _time(text: str, now: datetime) -> datetime | None:
    try:
        return node_journal.parse_time(text, now) if text else None
    except BadTime as error:
        raise ProgramUsageError(f"Failed to parse timestamp: {text}") from error
