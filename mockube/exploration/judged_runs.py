"""Runs of plans in places, as many as there may be at a time, and what is wrong with each, compared with the undisturbed ones."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack
from typing import Final

from msgspec.structs import replace

from .exploration import Options
from .fork_runner import ForkRunner
from .judgements import (
    Key,
    Keys,
    OperatorProblem,
    UndisturbedRuns,
    deletion_problems,
    end_differences,
    find_problems,
)
from .plans import Plan
from .run_outcome import GoesOn, IsAtEnd, IsEnough, RunLimits, RunOutcome, is_never_enough
from .run_places import WAITING, RunPlaces, cores

FIRST_LIMITS: Final = RunLimits(settle=1.5, patience=0.0, max_seconds=60.0)
"""Those of the undisturbed runs, from which the others are learned."""
SLOWER: Final = 2
"""How much longer a run may take in which a plan is repeated: other runs may have made the first one late."""


class JudgedRuns:
    def __init__(self, runner: ForkRunner, options: Options) -> None:
        self.runner, self._options = runner, options
        clock = runner.setting.clock
        self.places = RunPlaces(options.jobs, clock)
        self._waiting_places = (
            self.places if options.jobs == 1 else RunPlaces(options.jobs or WAITING * cores(), clock)
        )
        """Those of runs that wait until the operator tries again, which take no processor time."""
        self.references: dict[str, UndisturbedRuns] = {}
        """By ending. They and the limits are learned from undisturbed runs."""
        self.limits = FIRST_LIMITS

    async def run(
        self, plan: Plan, goes_on: GoesOn | None = None, is_enough: IsEnough = is_never_enough
    ) -> RunOutcome:
        """Run a plan, as one of the plans if it may go on, or before them to see whether it shows what another one has shown."""
        return await self.run_in(self.places, plan, self.limits, self._is_as_expected, goes_on, is_enough)

    async def run_again(
        self, plan: Plan, late: float = 0.0, until: AbstractSet[Key] = frozenset()
    ) -> RunOutcome:
        """Run a plan more slowly to confirm what it shows, and so many seconds more for an operator that tries again late.

        A run that shows all of some problems, if there are any, does not wait for another end, and for no end at all if they are deletions.
        """
        limits, is_given = self.limits, self._options.patience is not None
        slower = replace(
            limits,
            # A longer run says what the operator repairs, unless the user has said how long to wait.
            patience=late or limits.patience * (SLOWER if is_given else 1),
            pause=max(limits.pause * SLOWER, late),
            max_seconds=limits.max_seconds * SLOWER + late,
            is_late=bool(late),
            is_recorded=self._options.has_reports,
        )

        def is_at_end(outcome: RunOutcome) -> bool:
            # What the operator repairs, a longer run says; a user who has said how long to wait means each run.
            is_shown = bool(until) and not is_given and until <= self.keys(outcome)
            return is_shown or self._is_as_expected(outcome)

        places = self._waiting_places if late else self.places
        return await self.run_in(places, plan, slower, is_at_end, is_enough=self.shows_by_deletions(until))

    def shows_by_deletions(self, keys: AbstractSet[Key]) -> IsEnough:
        """Return what says whether a run has shown some problems, if there are any and all are deletions."""
        return lambda outcome: bool(keys) and keys <= _keys(self.deletion_problems(outcome))

    def _is_as_expected(self, outcome: RunOutcome) -> bool:
        reference = self.references[outcome.plan.ending]
        return not outcome.failed_expectations and not end_differences(outcome.trace, reference)

    async def run_in(
        self,
        places: RunPlaces,
        plan: Plan,
        limits: RunLimits,
        is_at_end: IsAtEnd,
        goes_on: GoesOn | None = None,
        is_enough: IsEnough = is_never_enough,
    ) -> RunOutcome:
        """Run a plan when fewer runs are in progress than may be."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(places.place(is_urgent=goes_on is None))

            async def goes_on_elsewhere(outcome: RunOutcome) -> float:
                """Leave the place if the run goes on: it mostly waits then."""
                seconds = 0.0 if goes_on is None else await goes_on(outcome)
                if seconds and self._waiting_places is not places:
                    await stack.aclose()
                    await stack.enter_async_context(self._waiting_places.place())
                return seconds

            return await self.runner.run(plan, limits, is_at_end, goes_on_elsewhere, is_enough)

    def keys(self, outcome: RunOutcome) -> Keys:
        return _keys(self.problems(outcome))

    def deletion_problems(self, outcome: RunOutcome) -> Sequence[OperatorProblem]:
        """Return what is wrong with the deletions of a run that has not ended."""
        return deletion_problems(outcome, self.references[outcome.plan.ending])

    def problems(self, outcome: RunOutcome) -> Sequence[OperatorProblem]:
        if outcome.problem:
            return ()
        return find_problems(
            outcome, self.references[outcome.plan.ending], self.runner.setting.scenario.invariants
        )


def _keys(problems: Iterable[OperatorProblem]) -> Keys:
    return frozenset(problem.key for problem in problems)
