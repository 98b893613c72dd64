"""What a judgement says: its outcome, its figures, its findings, what it did, and how to see it by hand. Pure."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct, field


class Level(StrEnum):
    """How severe a finding is."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Verdict(StrEnum):
    PASSED = "passed"
    NOTED = "passed with notes"
    WARNED = "warned"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


_NOTHING: Final[Mapping[str, str]] = {}
SEVERITY: Final[Mapping[Level, int]] = {Level.NOTE: 1, Level.WARNING: 2, Level.ERROR: 3}
_OUTCOMES: Final[Mapping[int, Verdict]] = {
    0: Verdict.PASSED,
    1: Verdict.NOTED,
    2: Verdict.WARNED,
    3: Verdict.FAILED,
}


class Finding(Struct, frozen=True, kw_only=True):
    """One fact that is wrong. `rule` and `subject` name it in a baseline: they have nothing that differs between two runs."""

    rule: str
    level: Level
    subject: str
    message: str
    details: Sequence[str] = ()
    """Lines that show it: differences, requests, the end of a log."""
    by_hand: Sequence[str] = ()
    """Commands that show it, after those of the judgement."""

    @property
    def text(self) -> str:
        return f"{self.subject}: {self.message}"


class Judgement(Struct, kw_only=True):
    """One of the twelve judgements of an operator, and what it found."""

    name: str
    question: str
    reason: str = ""
    """Why it cannot be made for this operator; "" if it was made."""
    figures: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    did: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(
        self,
        rule: str,
        level: Level,
        subject: str,
        message: str,
        *,
        details: Sequence[str] = (),
        by_hand: Sequence[str] = (),
    ) -> None:
        self.findings.append(
            Finding(
                rule=rule, level=level, subject=subject, message=message, details=details, by_hand=by_hand
            )
        )

    @property
    def outcome(self) -> Verdict:
        if self.reason:
            return Verdict.NOT_APPLICABLE
        return _OUTCOMES[max((SEVERITY[each.level] for each in self.findings), default=0)]


def fingerprint(judgement: str, finding: Finding) -> str:
    """Return what names a finding in a baseline and in code scanning, the same in each run."""
    identity = f"{judgement}\n{finding.rule}\n{finding.subject}"
    return hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16]


class OperatorReport(Struct, frozen=True, kw_only=True):
    """The judgements of an operator, and the findings of a baseline, which are no reason to fail."""

    operator: str
    judgements: Sequence[Judgement]
    known: Mapping[str, str] = _NOTHING
    """The fingerprints of the baseline, with the names of their judgements."""
    set_up: Sequence[str] = ()
    """The commands that start a cluster with the operator by hand, before those of a judgement."""
    files: Sequence[str] = ()
    """The inputs, of which the first one is the place of findings in code scanning."""

    def findings(self) -> Iterator[tuple[Judgement, Finding]]:
        for judgement in self.judgements:
            for finding in judgement.findings:
                yield judgement, finding

    def is_known(self, judgement: Judgement, finding: Finding) -> bool:
        return fingerprint(judgement.name, finding) in self.known

    def new_findings(self) -> Iterator[tuple[Judgement, Finding]]:
        return ((each, finding) for each, finding in self.findings() if not self.is_known(each, finding))

    def failed(self, fail_on: str) -> bool:
        """Return whether a finding that is not in the baseline is as severe as a level."""
        least = SEVERITY[Level(fail_on)]
        return any(SEVERITY[finding.level] >= least for _, finding in self.new_findings())

    def missing_known(self) -> frozenset[str]:
        """Return the fingerprints of the baseline whose judgements were made, and whose findings were not found."""
        judgement_names = {
            each.name for each in self.judgements if each.outcome is not Verdict.NOT_APPLICABLE
        }
        expected = {key for key, judgement in self.known.items() if judgement in judgement_names}
        return frozenset(expected - {fingerprint(each.name, finding) for each, finding in self.findings()})
