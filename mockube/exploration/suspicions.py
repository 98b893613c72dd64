"""What runs of plans have shown, until it is a finding: the smallest plan, its repetitions, and a run in which the operator may repair it."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.component_base.supervision import cancel_and_wait, start, start_in
from mockube.report.recording import RecordedRun

from .exploration import Exploration, Options, ShowFinding, ShowProgress, SuspicionProgress
from .findings import OperatorFinding, what_happened
from .judged_runs import JudgedRuns
from .judgements import REPAIRABLE, Key, Keys, OperatorProblem
from .plans import Disturbance, Plan, smallest
from .run_outcome import RunOutcome
from .run_recording import runs_by_name

REPETITIONS: Final = 3
LATE_SECONDS: Final = 35.0
"""How long a run goes on in which an operator may repair what is wrong: a common RequeueAfter is 30 seconds."""
MAX_REPAIRS: Final = 3
"""After so many repairs of a problem by the operator itself, other plans that show it are not looked at."""


class Suspicion(Struct, frozen=True, kw_only=True):
    """Problems that a run has shown, and that are not confirmed."""

    plan: Plan
    keys: set[Key]
    """Those of a run that goes on become more."""
    repairable: Keys
    """The keys of those that the operator may repair when it tries again."""
    seconds: float
    """How long after the undisturbed runs they were seen."""
    late: asyncio.Task[RunOutcome] | None = None
    """The run that has shown them, if it goes on for an operator that tries again late."""


class _LongerRuns:
    """Runs of the plans of one suspicion that go on for an operator that tries again late. All problems of a plan share one."""

    def __init__(self, begin: Callable[[Plan], asyncio.Task[RunOutcome]]) -> None:
        self._begin = begin
        self._runs: dict[Sequence[Disturbance], asyncio.Task[RunOutcome]] = {}
        self._needed: set[Sequence[Disturbance]] = set()

    def add(self, plan: Plan, run: asyncio.Task[RunOutcome]) -> None:
        self._runs[tuple(plan.disturbances)] = run

    def run_of(self, plan: Plan) -> asyncio.Task[RunOutcome]:
        if tuple(plan.disturbances) not in self._runs:
            self.add(plan, self._begin(plan))
        return self._runs[tuple(plan.disturbances)]

    def need(self, plan: Plan) -> None:
        """Let a run go on to its end."""
        self._needed.add(tuple(plan.disturbances))

    async def end_others(self) -> None:
        await cancel_and_wait([run for plan, run in self._runs.items() if plan not in self._needed])


class Suspicions:
    def __init__(
        self,
        runs: JudgedRuns,
        options: Options,
        result: Exploration,
        show_progress: ShowProgress,
        show_finding: ShowFinding,
    ) -> None:
        self._runs, self._options, self._result = runs, options, result
        self._show_progress, self._show_finding = show_progress, show_finding
        self._clock = runs.runner.setting.clock
        self.began = self._clock.monotonic()
        """When the first plan began."""
        self.group: asyncio.TaskGroup | None = None
        """The tasks of an exploration in progress."""
        self.seen: set[Key] = set()
        """The keys of problems that are found, or that are being confirmed."""
        self._others: dict[Key, dict[str, tuple[Plan, Sequence[OperatorProblem]]]] = {}
        """By key and action: plans that have shown the same problem while it was confirmed."""
        self._repairs: Counter[Key] = Counter()
        """How often the operator has repaired each problem later."""

    def seconds(self) -> float:
        """Return how long after the undisturbed runs it is."""
        return self._clock.monotonic() - self.began

    def new_of(self, problems: Iterable[OperatorProblem]) -> Sequence[OperatorProblem]:
        return [problem for problem in problems if problem.key not in self.seen]

    def may_be_repaired(self, problems: Iterable[OperatorProblem]) -> bool:
        """Return whether an operator may repair some problems, unless the user has said how long that may take."""
        return self._options.patience is None and any(each.type in REPAIRABLE for each in problems)

    def suspect(self, plan: Plan, new: Sequence[OperatorProblem]) -> Suspicion:
        keys = {problem.key for problem in new}
        self.seen |= keys  # so that no other plan reports them meanwhile
        return Suspicion(
            plan=plan,
            keys=keys,
            repairable=frozenset(each.key for each in new if self.may_be_repaired([each])),
            seconds=self.seconds(),
        )

    def report_early(
        self, plan: Plan, new: Sequence[OperatorProblem], earlier: Suspicion | None
    ) -> Suspicion:
        """Report problems of a run that goes on, with those that it has shown before, if they are still being confirmed."""
        suspicion = self.suspect(plan, new)
        if earlier is not None and earlier.keys:
            earlier.keys.update(suspicion.keys)
            return earlier
        assert self.group is not None  # plans are being tried
        start_in(self.group, "confirmation of a finding", self._report_all(suspicion))
        return suspicion

    async def _report_all(self, suspicion: Suspicion) -> None:
        while suspicion.keys:
            await self.report(suspicion)

    async def report(self, suspicion: Suspicion) -> None:
        """Report problems with their smallest plans, which differ if the disturbances of a plan cause different ones."""
        longer = _LongerRuns(self._begin_longer_run)
        if suspicion.late is not None:
            longer.add(suspicion.plan, suspicion.late)
        while suspicion.keys and (reported := await self._add_finding(suspicion, longer)):
            suspicion.keys.difference_update(reported)
        not_seen_again = frozenset(suspicion.keys)
        suspicion.keys.clear()
        await longer.end_others()
        await self._report_others(not_seen_again)

    async def _report_others(self, keys: Keys) -> None:
        """Report what is not confirmed by the next other plan that has shown it; without one, a later plan may."""
        self.seen -= keys
        for key in keys:
            others = self._others.pop(key, {})
            for action in [*others]:
                plan, problems = others.pop(action)
                if new := self.new_of(problems):
                    self._others[key] = others
                    await self.report(self.suspect(plan, new))
                    break

    def note_other_plan(self, plan: Plan, problems: Sequence[OperatorProblem]) -> None:
        """Count a plan that shows a finding again, or keep one for each action in case the first one is not confirmed."""
        keys = {problem.key for problem in problems}
        for index, finding in enumerate(self._result.findings):
            if finding.key & keys:
                self._result.findings[index] = replace(finding, others=finding.others + 1)
                return
        for key in keys:
            self._others.setdefault(key, {}).setdefault(plan.disturbances[0].action, (plan, problems))

    async def _add_finding(self, suspicion: Suspicion, longer: _LongerRuns) -> Keys:
        """Add a finding if problems are seen again, and return which; later, if the operator may repair some of them."""
        keys = suspicion.keys

        async def shows(smaller: Plan) -> bool:
            is_enough = self._runs.shows_by_deletions(keys)
            return bool(keys & self._runs.keys(await self._runs.run(smaller, is_enough=is_enough)))

        least = await smallest(suspicion.plan, shows)
        late = longer.run_of(least) if keys & suspicion.repairable else None
        repetitions = await asyncio.gather(
            *(self._runs.run_again(least, until=keys) for _ in range(REPETITIONS))
        )
        confirmed = [each for each in repetitions if keys & self._runs.keys(each)]
        # The one that shows most comes first: what it does not show needs repetitions of its own.
        confirmed.sort(key=lambda each: -len(keys & self._runs.keys(each)))
        problems = [each for run in confirmed[:1] for each in self._runs.problems(run) if each.key in keys]
        if not confirmed:
            self._result.not_seen_again += 1
            return frozenset()
        first = confirmed[0]
        finding = OperatorFinding(
            plan=least,
            problems=problems,
            history=what_happened(first.trace, problems),
            log=first.log,
            seconds=suspicion.seconds,
            repeated_seconds=self.seconds(),
            confirmed=len(confirmed),
            repetitions=REPETITIONS,
            runs=self._compared_runs(first),
        )
        if late is not None and any(each.type in REPAIRABLE for each in problems):
            longer.need(least)
            self._show_progress(SuspicionProgress(finding=finding))
            await self._later(self._add_unless_repaired(finding, late))
        else:
            self.add(finding)
        return finding.key

    def _begin_longer_run(self, plan: Plan) -> asyncio.Task[RunOutcome]:
        return start("a longer run", self._runs.run_again(plan, late=LATE_SECONDS), group=self.group)

    async def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something while other plans are tried."""
        if self.group is None:
            await work
        else:
            start_in(self.group, "confirmation of a finding", work)

    async def _add_unless_repaired(self, finding: OperatorFinding, late: asyncio.Task[RunOutcome]) -> None:
        """Add a finding without what the operator repairs when it tries again: many do so only after 5 to 30 seconds."""
        outcome = await late
        repairable = {problem.key for problem in finding.problems if problem.type in REPAIRABLE}
        is_tried_again = outcome.waited > 2 * self._runs.limits.patience or finding.confirmed == REPETITIONS
        is_judged = not outcome.problem and outcome.is_applied and outcome.is_quiet
        if not is_judged or not is_tried_again or self._runs.keys(outcome) & repairable:
            self.add(finding)
            return
        self._result.repaired_later += len(repairable)
        self._show_progress(SuspicionProgress(finding=finding, is_repaired=True))
        self._repairs.update(repairable)
        if remaining := [problem for problem in finding.problems if problem.key not in repairable]:
            self.add(replace(finding, problems=remaining))
        # Another plan may show the same for good, but to look at all of them takes long.
        await self._report_others(frozenset(key for key in repairable if self._repairs[key] < MAX_REPAIRS))

    def _compared_runs(self, outcome: RunOutcome) -> Mapping[str, RecordedRun]:
        if outcome.recording is None:
            return {}
        return runs_by_name(self._runs.references[outcome.plan.ending].recording, outcome.recording)

    def add(self, finding: OperatorFinding) -> None:
        self._result.findings.append(finding)
        self._show_finding(finding)
