"""The results of all minors, merged by object: one row for an object, one line for a finding of several minors. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from .findings import SEVERITY, LintResult, ObjectFinding, Outcome, worst
from .objects import Identity, LintObject

FAILURES: Final[Mapping[str, Outcome | None]] = {
    "refused": Outcome.DISABLED,
    "broken": Outcome.BROKEN,
    "dropped": Outcome.DROPPED,
    "warned": Outcome.WARNED,
    "never": None,
}
"""The values of --fail-on, and the least severe outcome that each fails on."""


class MergedFinding(Struct, frozen=True, kw_only=True):
    finding: ObjectFinding
    minors: Sequence[str]
    line: int
    """The line of the field in the file; 0 if the object has no lines."""


class Row(Struct, kw_only=True, dict=True):
    """An object with its results."""

    item: LintObject
    """The object as the first minor has it. One that charts render differently for others has no lines."""
    results: dict[str, LintResult]
    """By minor; a chart may not render the object for some."""

    @cached_property
    def outcome(self) -> Outcome:
        """The worst outcome of all minors."""
        return worst(each.outcome for each in self.results.values())

    @cached_property
    def findings(self) -> Sequence[MergedFinding]:
        """The findings, the worst first, then by line; each is listed once with the minors that have it."""
        minors_by_finding: dict[ObjectFinding, list[str]] = {}
        for minor, checked in self.results.items():
            for finding in checked.findings:
                minors_by_finding.setdefault(finding, []).append(minor)
        merged = [
            MergedFinding(finding=finding, minors=minors, line=self.item.line_of(finding))
            for finding, minors in minors_by_finding.items()
        ]
        return sorted(merged, key=lambda each: (-SEVERITY[each.finding.outcome], each.line))


class Report(Struct, frozen=True, kw_only=True):
    minors: Sequence[str]
    rows: Sequence[Row]

    def failed(self, fail_on: str) -> bool:
        return any(fails(row.outcome, fail_on) for row in self.rows)

    def counts(self) -> Mapping[Outcome, int]:
        """Return the number of objects by their worst outcome, the worst first."""
        outcomes = [row.outcome for row in self.rows]
        return {outcome: outcomes.count(outcome) for outcome in reversed(Outcome) if outcome in outcomes}


def fails(outcome: Outcome, fail_on: str) -> bool:
    least = FAILURES[fail_on]
    return least is not None and SEVERITY[outcome] >= SEVERITY[least]


def make_report(
    inputs: Mapping[str, Sequence[LintObject]], results: Mapping[str, Sequence[LintResult]]
) -> Report:
    rows: dict[tuple[Identity, int], Row] = {}
    for minor, objects in inputs.items():
        for key, item, checked in zip(_keys(objects), objects, results[minor], strict=True):
            row = rows.setdefault(key, Row(item=item, results={}))
            row.results[minor] = checked
    return Report(minors=[*inputs], rows=[*rows.values()])


def _keys(objects: Collection[LintObject]) -> Iterator[tuple[Identity, int]]:
    """Yield the identity of each object, and the number of objects before it that have the same."""
    counts: dict[Identity, int] = {}
    for item in objects:
        number = counts[item.identity] = counts.get(item.identity, -1) + 1
        yield item.identity, number
