"""The report for people: a table of objects and minors, and the findings below it. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mockube.component_base.printable import printable

from .findings import Outcome
from .minor_ranges import format_minors
from .report import MergedFinding, Report, Row

_OK: Final = "ok"
_ABSENT: Final = "-"
_GOOD: Final = frozenset({Outcome.ACCEPTED, Outcome.SKIPPED})
_RED, _YELLOW, _BOLD, _RESET = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"
_COLORS: Final = {Outcome.NOTED: "", Outcome.WARNED: _YELLOW, Outcome.DROPPED: _YELLOW}

Paint = Callable[[str, str], str]
"""Returns a text in a color."""


def plain(text: str, _color: str) -> str:
    return text


def colored(text: str, color: str) -> str:
    return f"{color}{text}{_RESET}" if color else text


def table_rows(report: Report, *, shows_all: bool) -> Sequence[Sequence[str]]:
    """Return the table with its header: the objects with findings, or all. Minors with equal columns share one."""
    rows = [row for row in report.rows if shows_all or row.outcome not in _GOOD]
    if not rows:
        return []
    columns: list[tuple[list[str], list[str]]] = []
    for minor in report.minors:
        cells = [_cell(row, minor) for row in rows]
        if columns and columns[-1][1] == cells:
            columns[-1][0].append(minor)
        else:
            columns.append(([minor], cells))
    header = ["OBJECT", *(format_minors(minors) for minors, _ in columns)]
    return [
        header,
        *(
            [row.item.title, *cells]
            for row, *cells in zip(rows, *(cells for _, cells in columns), strict=True)
        ),
    ]


def _cell(row: Row, minor: str) -> str:
    checked = row.results.get(minor)
    if checked is None:
        return _ABSENT
    return _OK if checked.outcome is Outcome.ACCEPTED else checked.outcome.value


def finding_lines(report: Report, paint: Paint) -> Iterator[str]:
    """Yield the lines of the findings, below the name of each object."""
    for row in report.rows:
        if row.outcome in _GOOD:
            continue
        yield paint(_heading(row), _BOLD)
        for merged in row.findings:
            yield f"  {_finding(row, merged, report.minors, paint)}"
        yield ""


def _heading(row: Row) -> str:
    namespace = row.item.namespace
    return printable(f"{row.item.title} (namespace {namespace})" if namespace else row.item.title)


def _finding(row: Row, merged: MergedFinding, minors: Sequence[str], paint: Paint) -> str:
    outcome = merged.finding.outcome
    position = printable(f"{row.item.file}:{merged.line}" if merged.line else row.item.file)
    scope = "" if len(merged.minors) == len(minors) else f" in {format_minors(merged.minors)}"
    word = paint(outcome.value, _COLORS.get(outcome, _RED))
    rule = f" [{merged.finding.rule}]" if merged.finding.rule else ""
    return f"{position}: {word}{scope}: {printable(merged.finding.message)}{rule}"


def summary(report: Report) -> str:
    count = len(report.rows)
    objects = "1 object" if count == 1 else f"{count} objects"
    counts = ", ".join(f"{number} {outcome}" for outcome, number in report.counts().items())
    return f"{objects} against {format_minors(report.minors)}: {counts}"
