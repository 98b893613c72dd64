"""What runs of plans share, how long one waits, and what it was."""

from collections.abc import Awaitable, Callable
from math import inf
from pathlib import Path

from msgspec import Struct, field

from mockube.client.kubeconfig import Access
from mockube.component_base.clock import Clock
from mockube.objects.resource_names import ResourceNames
from mockube.report.recording import RecordedRun

from .idle_reads import FEW_PER_SECOND, IdleReads
from .operator_identity import OperatorIdentity
from .plans import Plan
from .scenario import Scenario
from .starters import Starter
from .trace import Trace


class RunLimits(Struct, frozen=True, kw_only=True):
    """How long a run waits, and what is kept of it."""

    settle: float
    """After so long without a write, a run is quiet."""
    patience: float
    """How long a run that has ended otherwise than expected may still go on."""
    pause: float = inf
    """After so long without a write, a condition of a step does not come any more."""
    max_seconds: float
    """A run that is not quiet after so long never is."""
    idle_reads: float = FEW_PER_SECOND
    """After more reads in a second than this while nothing changes, a run goes on to see whether the operator pauses."""
    is_late: bool = False
    """Whether it waits longer for an operator that prints when it tries again."""
    is_recorded: bool = False
    """Whether its outcome has what a report contains."""


class RunSetting(Struct, frozen=True, kw_only=True):
    """What all runs share."""

    scenario: Scenario
    starter: Starter
    clock: Clock
    access: Access
    """The administrator's, whose server is that of a fork in each run."""
    identity: OperatorIdentity
    folder: Path
    names: ResourceNames
    """The resources of the cluster that was arranged, which each fork has, too."""


class RunOutcome(Struct, kw_only=True):
    """What a run was."""

    plan: Plan
    trace: Trace
    is_quiet: bool = True
    failed_steps: list[str] = field(default_factory=list)
    detail: str = ""
    """What was found instead, when a condition of a step did not come."""
    failed_expectations: list[str] = field(default_factory=list)
    exits: list[str] = field(default_factory=list)
    """The messages of the exits that nothing caused."""
    crashes: list[str] = field(default_factory=list)
    """What was printed at those that were crashes."""
    log: str = ""
    log_bytes: int = 0
    """How much the operator printed, of which the log has only the beginning and the end if it is much."""
    is_cut_short: bool = False
    """Whether it ended when it had shown enough: its end says nothing."""
    is_applied: bool = True
    """Whether all disturbances took place."""
    problem: str = ""
    """Why the run says nothing: the operator did not start."""
    ignored_term: bool = False
    waited: float = 0.0
    """How many seconds the quiet run went on until its end was as expected, or until it was given up."""
    idle_reads: IdleReads | None = None
    """What the operator read while nothing changed, if it did not pause."""
    idle_reads_per_second: float = 0.0
    recording: RecordedRun | None = None
    """What a report of the run contains, if one is written."""


IsAtEnd = Callable[[RunOutcome], bool]
"""Says of a quiet run whether its end is as expected, or need not be waited for."""
GoesOn = Callable[[RunOutcome], Awaitable[float]]
"""Says how long a run goes on that has not ended as expected, since it was quiet for the first time; 0 if it ends now."""


IsEnough = Callable[[RunOutcome], bool]
"""Says, when the operator has deleted something, whether a run has shown enough."""


def is_never_enough(_: RunOutcome) -> bool:
    return False


async def ends_now(_: RunOutcome) -> float:
    return 0.0
