"""An exploration: how it is limited, how it goes on, and what it has found."""

from collections import Counter
from collections.abc import Callable

from msgspec import Struct, field

from .findings import OperatorFinding
from .plans import PLANS


class Options(Struct, frozen=True, kw_only=True):
    seconds: float | None = None
    """The budget of time for the plans."""
    plans: int = PLANS
    seed: int = 0
    jobs: int = 0
    """How many runs there are at a time; 0 for three on each core, and more while the processors are idle."""
    patience: float | None = None
    has_reports: bool = False
    """Whether findings have what a report of both runs needs, which takes longer."""


class LearningProgress(Struct, frozen=True, kw_only=True):
    """How many undisturbed runs have ended."""

    done: int
    total: int
    writes: int | None = None
    """How many writes were learned; None until the end."""
    seconds: float = 0.0


class PlanProgress(Struct, frozen=True, kw_only=True):
    done: int
    total: int
    findings: int


class SuspicionProgress(Struct, frozen=True, kw_only=True):
    """Repetitions have shown what may be a finding: the operator may still repair it, or has done so."""

    finding: OperatorFinding
    is_repaired: bool = False


Progress = LearningProgress | PlanProgress | SuspicionProgress
ShowProgress = Callable[[Progress], None]
ShowFinding = Callable[[OperatorFinding], None]
"""Called with each finding as soon as it is confirmed."""


class Exploration(Struct, kw_only=True):
    """What was explored, and what was found."""

    findings: list[OperatorFinding] = field(default_factory=list)
    runs: int = 0
    """The number of plans that were tried."""
    not_applied: int = 0
    """Of these, how many could not take place: a moment did not come, or an object was not there."""
    not_judged: Counter[str] = field(default_factory=Counter)
    """Why runs of plans say nothing, and how many."""
    not_seen_again: int = 0
    repaired_later: int = 0
    """How many problems the operator itself repairs when it tries again."""
    seconds: float = 0.0
    learning_seconds: float = 0.0
    writes: int = 0
    notes: list[str] = field(default_factory=list)
    """What is not the same each time without a disturbance."""
    covered: Counter[str] = field(default_factory=Counter)
    coverable: Counter[str] = field(default_factory=Counter)

    def coverage(self) -> str:
        parts = (f"{self.covered[name]} of {count} {name}" for name, count in self.coverable.items())
        return ", ".join(parts)
