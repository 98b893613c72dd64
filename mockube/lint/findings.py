"""What a server of one minor says of an object: an outcome, and findings with the fields that they concern. Pure."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Outcome(StrEnum):
    """The outcome of one object in one minor, from best to worst."""

    SKIPPED = "skipped"
    """There is no definition of its kind, and such kinds are ignored."""
    ACCEPTED = "accepted"
    NOTED = "noted"
    """Accepted, and something has to be in the cluster that is not in the files."""
    WARNED = "warned"
    DROPPED = "dropped"
    """Accepted without some of its fields."""
    BROKEN = "broken"
    """Accepted, and it does not fit to the other objects."""
    DISABLED = "disabled"
    """The API server has this version of the kind, and serves it only if a flag enables it."""
    NOT_YET = "not-yet"
    """A later minor serves this version of the kind."""
    REMOVED = "removed"
    """An earlier minor served this version of the kind."""
    UNKNOWN = "unknown"
    """No minor serves the kind, and no definition of it is in the files."""
    REFUSED = "refused"


SEVERITY: Final = {outcome: index for index, outcome in enumerate(Outcome)}


class Api(Struct, frozen=True, kw_only=True, rename="camel"):
    """A version of a kind."""

    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


class ObjectFinding(Struct, frozen=True, kw_only=True):
    outcome: Outcome
    message: str
    field: str = ""
    """The path of the field, as servers print it; "" if the finding is not about one."""
    line: int = 0
    """The line in the file, if it is known before the field is searched."""
    replacement: Api | None = None
    """What replaces a removed API."""
    rule: str = ""
    """The rule that found it; "" if it is from a server."""


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the most severe outcome; without any, the object is accepted."""
    return max(outcomes, key=SEVERITY.__getitem__, default=Outcome.ACCEPTED)


class LintResult(Struct, frozen=True, kw_only=True):
    """An object after the check by one minor."""

    outcome: Outcome
    findings: Sequence[ObjectFinding]

    @classmethod
    def of(cls, findings: Sequence[ObjectFinding]) -> "LintResult":
        return cls(outcome=worst(finding.outcome for finding in findings), findings=findings)

    def with_findings(self, more: Sequence[ObjectFinding]) -> "LintResult":
        """Return the result with more findings, without those of fields that the server refuses."""
        refused = {each.field for each in self.findings if each.outcome is Outcome.REFUSED} - {""}
        return LintResult.of([*self.findings, *(each for each in more if each.field not in refused)])
