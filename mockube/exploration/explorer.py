"""An exploration: the undisturbed runs, from which plans are made, the runs of all plans in parallel, and the findings."""

import asyncio
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

from msgspec.structs import replace

from mockube.apimachinery.randomness import Random, SeededRandom
from mockube.component_base.supervision import first_cause, run_until, start, start_in
from mockube.failure import Failure, UsageError

from . import plans
from .exploration import Exploration, LearningProgress, Options, PlanProgress, ShowFinding, ShowProgress
from .findings import OperatorFinding, what_happened
from .fork_runner import ForkRunner
from .judged_runs import SLOWER, JudgedRuns
from .judgements import Key
from .learning import Learner
from .plans import Disturbance, Learned, Plan, pair_plans, single_plans
from .run_outcome import RunOutcome
from .suspicions import LATE_SECONDS, Suspicion, Suspicions


class Explorer:
    def __init__(
        self,
        runner: ForkRunner,
        options: Options,
        show_progress: ShowProgress = lambda _: None,
        show_finding: ShowFinding = lambda _: None,
        runs: JudgedRuns | None = None,
    ) -> None:
        self._options, self._show_progress = options, show_progress
        self._clock = runner.setting.clock
        self._random: Random = SeededRandom(options.seed)
        self.result = Exploration()
        self._runs = runs or JudgedRuns(runner, options)
        self._suspicions = Suspicions(self._runs, options, self.result, show_progress, show_finding)
        self._learner = Learner(self._runs, options, self.result, show_progress, self._suspicions.add)

    async def learn(self) -> Learned:
        learned = await self._learner.learn()
        self._suspicions.seen |= self._learner.seen
        return learned

    async def explore(self) -> Exploration:
        """Try the plans within the budget, and return what was found."""
        learned = await self.learn()
        runs = 1 + sum(2 for _ in self._runs.references)
        self._show_progress(
            LearningProgress(
                done=runs, total=runs, writes=self.result.writes, seconds=self.result.learning_seconds
            )
        )
        self._suspicions.began = self._clock.monotonic()
        singles = single_plans(learned, self._random)
        for plan in singles:
            self.result.coverable[_area(plan.disturbances[0])] += 1
        pairs = pair_plans(singles, self._random.stream("pairs"))
        every = (
            chain(singles, pairs)
            if self._options.seconds is not None or len(singles) < self._options.plans
            else iter(singles)
        )
        await self._run_all(every)
        self.result.seconds = self._suspicions.seconds()
        self._check_judged()
        return self.result

    def _check_judged(self) -> None:
        """Raise Failure if no plan could be judged: no finding would look as if nothing was wrong."""
        not_judged = self.result.not_judged
        if not self.result.runs and not self.result.findings:
            raise Failure("no plan was tried: the scenario allows none that is possible, or --budget no time")
        if self.result.runs and self.result.runs == not_judged.total() and not self.result.findings:
            ((problem, _),) = not_judged.most_common(1)
            raise Failure(f"none of {self.result.runs} plans could be judged: {problem}")

    async def _run_all(self, every: Iterator[Plan]) -> None:
        workers, are_tried = 0, asyncio.Event()

        async def work() -> None:
            nonlocal workers
            workers += 1
            while workers <= self._runs.places.count and self._may_begin() and (plan := next(every, None)):
                self.result.runs += 1
                await self._try(plan)
                self._show_progress(
                    PlanProgress(
                        done=self.result.runs, total=self._options.plans, findings=len(self.result.findings)
                    )
                )
            workers -= 1
            if not workers:
                are_tried.set()

        async def adapt(group: asyncio.TaskGroup) -> None:
            adapting = self._runs.places.adapt_to_machine(lambda: start_in(group, "plans", work()))
            await run_until(are_tried.wait(), adapting)

        try:
            async with asyncio.TaskGroup() as group:
                self._suspicions.group = group
                for _ in range(self._runs.places.count):
                    start_in(group, "plans", work())
                start_in(group, "places", adapt(group))
        except ExceptionGroup as errors:  # such as that of a full disk, on which a finding cannot be written
            raise first_cause(errors) from errors

    def _may_begin(self) -> bool:
        """Return whether the budget of time and of plans allows another one."""
        seconds = self._options.seconds
        is_late = seconds is not None and self._suspicions.seconds() >= seconds
        return not is_late and self.result.runs < self._options.plans

    async def _try(self, plan: Plan) -> None:
        """Run a plan, and report what is wrong. A run whose operator may repair that goes on, while the plan is repeated."""
        early_suspicion: asyncio.Future[Suspicion] = asyncio.get_running_loop().create_future()

        async def goes_on(outcome: RunOutcome) -> float:
            if outcome.failed_steps or len(plan.disturbances) > 1:
                return 0.0  # a step that has failed is done again, and a pair may have a smaller plan
            new = self._suspicions.new_of(self._runs.problems(outcome))
            if not self._suspicions.may_be_repaired(new):
                return 0.0
            early_suspicion.set_result(self._suspicions.suspect(plan, new))
            return LATE_SECONDS

        noticed: set[Key] = set()
        deletions: Suspicion | None = None

        def notice_deletions(outcome: RunOutcome) -> bool:
            """Report deletions at once: a run may still take long."""
            nonlocal deletions
            if new := self._suspicions.new_of(self._runs.deletion_problems(outcome)):
                noticed.update(each.key for each in new)
                deletions = self._suspicions.report_early(plan, new, deletions)
            return False

        running = self._runs.run(plan, goes_on=goes_on, is_enough=notice_deletions)
        run = start("the run of a plan", running, group=self._suspicions.group)
        either: Sequence[asyncio.Future[Any]] = (run, early_suspicion)
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if early_suspicion.done():
            self._count_covered(plan)
            await self._suspicions.report(replace(early_suspicion.result(), late=run))
        elif suspicion := self._judge(await run, noticed):
            await self._suspicions.report(suspicion)

    def _judge(self, outcome: RunOutcome, noticed: AbstractSet[Key]) -> Suspicion | None:
        """Count a run that has ended, and return what may be a finding, but for what was noticed before."""
        if outcome.problem:
            self.result.not_judged[outcome.problem] += 1
            return None
        if outcome.is_applied:
            self._count_covered(outcome.plan)
        else:
            self.result.not_applied += 1
        problems = [each for each in self._runs.problems(outcome) if each.key not in noticed]
        if new := self._suspicions.new_of(problems):
            return self._suspicions.suspect(outcome.plan, new)
        self._suspicions.note_other_plan(outcome.plan, problems)
        return None

    def _count_covered(self, plan: Plan) -> None:
        if len(plan.disturbances) == 1:
            self.result.covered[_area(plan.disturbances[0])] += 1

    async def replay(self, plan: Plan) -> tuple[RunOutcome, OperatorFinding | None]:
        """Run one plan, and return what is wrong with it; None if nothing is."""
        if plan.ending not in ("", *self._learner.possible_endings()):
            raise UsageError(f"the scenario has nothing that can be deleted in this way: {plan}")
        await self.learn()
        began = self._clock.monotonic()
        outcome = await self._runs.run_again(plan, late=SLOWER * self._runs.limits.patience)
        self.result.runs, self.result.seconds = 1, self._clock.monotonic() - began
        if not plan.disturbances:  # what is wrong undisturbed is no difference from the undisturbed runs
            return outcome, next((each for each in self.result.findings if each.plan == plan), None)
        problems = self._runs.problems(outcome)
        if not problems:
            return outcome, None
        finding = OperatorFinding(
            plan=plan,
            problems=problems,
            history=what_happened(outcome.trace, problems),
            confirmed=1,
            repetitions=1,
        )
        return outcome, finding


def _area(disturbance: Disturbance) -> str:
    """Return what a disturbance covers a part of."""
    if disturbance.event is not None:
        return "events x kinds"
    if disturbance.action in (plans.HOLD, plans.DROP, plans.STALE_START, plans.RECREATE_STALE, plans.LAG):
        return "old caches"
    return "writes x moments" if disturbance.write is not None else "disturbances after steps"
