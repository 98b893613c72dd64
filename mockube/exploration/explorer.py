"""An exploration: the undisturbed runs, from which plans are made, the runs of all plans in parallel, and the findings."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from errno import EADDRINUSE
from itertools import chain, count
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import Random, SeededRandom
from mockube.component_base.supervision import cancel_and_wait, first_cause, run_until, start, start_in
from mockube.failure import Failure, UsageError
from mockube.operators.end_state import Identity, end_state, label_of, learn_varying
from mockube.operators.writes import LEASES
from mockube.report.recording import RecordedRun

from . import plans
from .findings import OperatorFinding, what_happened
from .fork_runner import ForkRunner
from .judgements import (
    REPAIRABLE,
    STAYS,
    OperatorProblem,
    UndisturbedRuns,
    end_differences,
    fields_written_in_both,
    find_problems,
)
from .old_lists import cached_resources, recreated_steps
from .plans import (
    PLANS,
    WITHOUT_STEPS,
    Disturbance,
    Learned,
    Plan,
    count_writes,
    pair_plans,
    rank_writes,
    single_plans,
    smallest,
)
from .received_events import learn_events
from .run_outcome import GoesOn, RunLimits, RunOutcome
from .run_places import WAITING, RunPlaces, cores
from .run_recording import runs_by_name
from .trace import Trace
from .webhooks import has_webhook

REPETITIONS: Final = 3
_SLOWER: Final = 2
"""How much longer a run may take in which a plan is repeated: other runs may have made the first one late."""
FIRST_LIMITS: Final = RunLimits(settle=1.5, patience=0.0, max_seconds=60.0)
"""Those of the undisturbed runs, from which the others are learned."""
LATE_SECONDS: Final = 35.0
"""How long a run goes on in which an operator may repair what is wrong: a common RequeueAfter is 30 seconds."""
_PORT_HINT: Final = (
    " (several runs take place at the same time: let it listen on no fixed port, as controller-runtime does with"
    " --metrics-bind-address=0 --health-probe-bind-address=0, or give it ownNetwork: true)"
)
MAX_REPAIRS: Final = 3
"""After so many repairs of a problem by the operator itself, other plans that show it are not looked at."""
DELETION_SECONDS: Final = 10.0
"""How long an undisturbed deletion may take after the last write."""
MAX_OWNED: Final = 20
_PRINTED_LINES: Final = 20
_PRINTED_CHARACTERS: Final = 400
_PODS: Final = "Pod"
_SETTLE: Final = (0.15, 3.0)
_PATIENCE: Final = (2.0, 10.0)
_LONGEST: Final = (10.0, 60.0)
_PAUSES: Final = 3
"""So many times the longest pause of undisturbed runs, a condition of a step is waited for while nothing is written."""


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


Report = Callable[[str], None]
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


class _Suspicion(Struct, frozen=True, kw_only=True):
    """Problems that a run has shown, and that are not confirmed."""

    plan: Plan
    keys: frozenset[tuple[str, ...]]
    repairable: frozenset[tuple[str, ...]]
    """The keys of those that the operator may repair when it tries again."""
    seconds: float
    """How long after the undisturbed runs they were seen."""
    late: asyncio.Task[RunOutcome] | None = None
    """The run that has shown them, if it goes on for an operator that tries again late."""


class ScenarioFails(Failure):
    """The scenario does not succeed undisturbed. The message has several lines: those that the operator printed, too."""


class Explorer:
    def __init__(
        self,
        runner: ForkRunner,
        options: Options,
        show_progress: ShowProgress = lambda _: None,
        show_finding: ShowFinding = lambda _: None,
    ) -> None:
        self._runner, self._options = runner, options
        self._show_progress, self._show_finding = show_progress, show_finding
        self._clock = runner.setting.clock
        self._scenario = runner.setting.scenario
        self._random: Random = SeededRandom(options.seed)
        self._places = RunPlaces(options.jobs, self._clock)
        self._waiting_places = (
            self._places if options.jobs == 1 else RunPlaces(options.jobs or WAITING * cores(), self._clock)
        )
        """Those of runs that wait until the operator tries again, which take no processor time."""
        self._repairs: Counter[tuple[str, ...]] = Counter()
        """How often the operator has repaired each problem later."""
        self._group: asyncio.TaskGroup | None = None
        """The tasks of an exploration in progress."""
        self._references: dict[str, UndisturbedRuns] = {}
        self._limits = FIRST_LIMITS
        self._seen: set[tuple[str, ...]] = set()
        """The keys of problems that are found, or that are being confirmed."""
        self._others: dict[tuple[str, ...], dict[str, tuple[Plan, Sequence[OperatorProblem]]]] = {}
        """By key and action: plans that have shown the same problem while it was confirmed."""
        self._without = self._scenario.without
        self._began = self._clock.monotonic()
        """When the first plan began."""
        self.result = Exploration()

    # --- the undisturbed runs

    async def learn(self) -> Learned:
        """Run the scenario undisturbed, twice, and return what plans are made of; raise Failure if that does not work."""
        began = self._clock.monotonic()
        endings = ["", *self._possible_endings()]
        runs = [
            self._undisturbed(Plan(ending=ending), is_recorded=self._options.has_reports and is_first)
            for ending in endings
            for is_first in (True, False)
        ]
        *outcomes, alone = await self._all_counted([*runs, self._undisturbed(WITHOUT_STEPS)])
        pairs = dict(zip(endings, zip(outcomes[::2], outcomes[1::2], strict=True), strict=True))
        self._limits = self._learn_limits(each for each in outcomes if each.is_quiet)
        for ending, both in pairs.items():
            self._references[ending] = self._reference(*both, alone)
            if not all(each.is_quiet for each in both):  # there is no end to compare with
                self._without |= {name for name, each in plans.ENDINGS.items() if each == ending}
        changes = chain.from_iterable(outcome.trace.changes for outcome in outcomes)
        written = {change.identity[0]: change.after or change.before for change in changes}
        await self._runner.prepare(tree for tree in written.values() if tree is not None)
        self.result.learning_seconds = self._clock.monotonic() - began
        return self._learned(*pairs[""])

    async def _all_counted(self, runs: Sequence[Coroutine[Any, Any, RunOutcome]]) -> Sequence[RunOutcome]:
        """Return what undisturbed runs were, and show how many have ended."""
        done = count(1)

        async def counted(run: Coroutine[Any, Any, RunOutcome]) -> RunOutcome:
            outcome = await run
            self._show_progress(LearningProgress(done=next(done), total=len(runs)))
            return outcome

        return await _all_of([*map(counted, runs)])

    def _possible_endings(self) -> Iterator[str]:
        subject = self._scenario.subject
        if subject is None:
            return
        if plans.DELETE_SUBJECT not in self._scenario.without:
            yield plans.DELETE
        if subject.namespace != "default" and plans.TERMINATE_NAMESPACE not in self._scenario.without:
            yield plans.TERMINATE

    async def _undisturbed(self, plan: Plan, *, is_recorded: bool = False) -> RunOutcome:
        patience = DELETION_SECONDS if plan.ending else FIRST_LIMITS.patience
        limits = replace(FIRST_LIMITS, patience=patience, is_recorded=is_recorded)
        outcome = await self._run_in(
            self._places, plan, limits, lambda trace: not plan.ending or self._subject_in(trace) is None
        )
        command = self._runner.setting.starter.text
        log = _last_lines(outcome.log)
        if outcome.problem:
            hint = _PORT_HINT if os.strerror(EADDRINUSE).lower() in outcome.problem.lower() else ""
            raise Failure(f"{command} does not run undisturbed: {outcome.problem}{hint}")
        if outcome.failed_steps or (outcome.failed_expectations and not plan.ending):
            text = "; ".join([*outcome.failed_steps, *outcome.failed_expectations])
            printed = f"the operator printed:\n{log}" if log else ""
            lines = (f"the scenario does not succeed undisturbed: {text}", outcome.detail, printed)
            raise ScenarioFails("\n".join(filter(None, lines)))
        if not outcome.is_quiet and not plan.ending and plan.has_steps:
            raise Failure(
                f"{command} never becomes quiet undisturbed: it had still written after {FIRST_LIMITS.max_seconds:g} s"
            )
        return outcome

    def _reference(self, first: RunOutcome, second: RunOutcome, alone: RunOutcome) -> UndisturbedRuns:
        touched = first.trace.touched | second.trace.touched
        ends = [
            [each.trace.objects[identity] for identity in touched if identity in each.trace.objects]
            for each in (first, second)
        ]
        fields = fields_written_in_both(first.trace, second.trace)
        counted = {each: fields.get(each, frozenset()) for each in first.trace.counted | second.trace.counted}
        varying, user = learn_varying(ends[0], ends[1], counted), self._runner.setting.identity.user
        reference = UndisturbedRuns(
            trace=first.trace,
            varying=varying,
            user=user,
            own=frozenset(end_state(alone.trace.objects_made_by(user), varying).labels.values()),
            writes=sum(each.is_write for each in first.trace.requests),
            ending=first.plan.ending,
            recording=first.recording,
        )
        found = [
            [*find_problems(each, reference, self._scenario.invariants), *self._subject_stays(each)]
            for each in (first, second)
        ]
        self._report_undisturbed(found, first)
        problems = chain.from_iterable(found)
        return replace(reference, problems=frozenset(each.key for each in problems if each.type != STAYS))

    def _subject_in(self, trace: Trace) -> Identity | None:
        subject = self._scenario.subject
        return None if subject is None else subject.find(trace.objects)

    def _subject_stays(self, outcome: RunOutcome) -> Iterator[OperatorProblem]:
        """Yield the resource if it still exists after its deletion, as when its finalizer is never removed."""
        identity = self._subject_in(outcome.trace)
        if not outcome.plan.ending or not outcome.is_quiet or identity is None:
            return
        kind, namespace, name = identity
        finalizers = ", ".join(meta.finalizers(outcome.trace.objects[identity]))
        reason = f": it has the finalizers {finalizers}" if finalizers else ""
        text = f"{label_of((kind, namespace, name))} still exists after its deletion{reason}"
        yield OperatorProblem(type="deletion", text=text, key=("still exists", kind))

    def _report_undisturbed(self, found: Sequence[Sequence[OperatorProblem]], outcome: RunOutcome) -> None:
        """Report what is wrong with an undisturbed run, but not what plans show: other ends, and what stays after a deletion."""
        unique = {
            problem.key: problem
            for problem in chain.from_iterable(found)
            if problem.type not in ("end", STAYS) and problem.key not in self._seen
        }
        if unique:
            self._seen |= {*unique}
            finding = OperatorFinding(
                plan=outcome.plan,
                problems=[*unique.values()],
                history=what_happened(outcome.trace, [*unique.values()]),
                log=outcome.log,
                confirmed=sum(any(problem.key in unique for problem in each) for each in found),
                repetitions=len(found),
                runs=runs_by_name(outcome.recording),
            )
            self._add(finding)

    def _learn_limits(self, outcomes: Iterable[RunOutcome]) -> RunLimits:
        traces = [outcome.trace for outcome in outcomes]
        gap = max((gap for trace in traces for gap in trace.gaps[1:]), default=0.0)
        settle = _within(3 * gap + 0.1, _SETTLE)
        max_seconds = max(trace.last_activity - trace.began for trace in traces)
        patience = self._options.patience
        if patience is None:
            patience = _within(8 * settle, _PATIENCE)
        return RunLimits(
            settle=settle,
            patience=patience,
            pause=max(_PAUSES * gap, patience),
            max_seconds=max(_within(10 * max_seconds + 5 * settle, _LONGEST), 2 * max_seconds),
        )

    def _learned(self, first: RunOutcome, second: RunOutcome) -> Learned:
        counts = [
            Counter(
                (each.verb, each.resource, each.namespace)
                for each in outcome.trace.requests
                if each.is_write and not each.is_error
            )
            for outcome in (first, second)
        ]
        reference = self._references[""]
        writes = [each for each in first.trace.requests if each.is_write and not each.is_error]
        counted = count_writes([(each.verb, each.resource, each.namespace) for each in writes])
        always = [write for write in counted if write.number < counts[1][write.group]]
        changed = {each.audit_id: each.identity for each in reversed(first.trace.changes)}
        self.result.writes = len(always)
        self.result.notes += [f"{line} is not the same each time" for line in reference.varying.lines()]
        for group in sorted(
            group for group in {*counts[0], *counts[1]} if counts[0][group] != counts[1][group]
        ):
            verb, resource, namespace = group
            place = f" in {namespace}" if namespace else ""
            self.result.notes.append(
                f"{verb} of {resource}{place} is sent {counts[0][group]} times, or {counts[1][group]} times"
            )
        subject = self._scenario.subject
        identity = subject.find({*first.trace.touched, *first.trace.objects}) if subject is not None else None
        if subject is not None and identity is None:
            self.result.notes.append(
                f"there is no {subject} in an undisturbed run, so that it is not disturbed"
            )
        kind, namespace, name = identity or ("", "", "")
        return Learned(
            writes=always,
            conditional=frozenset(
                write for write, each in zip(counted, writes, strict=True) if each.is_conditional
            ),
            ranks=rank_writes(counted, [changed.get(each.audit_id) for each in writes]),
            events=learn_events(first.trace, second.trace, reference.varying),
            watched=sorted(
                {
                    each.resource
                    for each in first.trace.requests
                    if each.verb == "watch" and each.resource != LEASES
                }
            ),
            owned=self._owned(first),
            subject=f"{kind}/{name}" if kind else "",
            subject_namespace=namespace,
            resources={change.identity[0]: change.resource for change in first.trace.changes},
            steps=len(self._scenario.act),
            has_lease=any(
                each.resource == LEASES and each.verb in ("update", "patch") for each in first.trace.requests
            ),
            has_nodes=_PODS in {kind for kind, _, _ in first.trace.touched},
            has_webhooks=any(has_webhook(tree) for tree in first.trace.objects.values()),
            cached=cached_resources(first.trace.requests),
            recreated=recreated_steps(first.trace, identity),
            without=self._without,
        )

    def _owned(self, outcome: RunOutcome) -> Sequence[tuple[str, str]]:
        """Return the objects that the operator has made and that still exist, with a star for what is random."""
        trace, user = outcome.trace, self._runner.setting.identity.user
        objects = trace.objects_made_by(user)
        labels = end_state(objects, self._references[""].varying).labels.values()
        return sorted({(f"{kind}/{label}", namespace) for kind, namespace, label in labels})[:MAX_OWNED]

    # --- the plans

    async def explore(self) -> Exploration:
        """Try the plans within the budget, and return what was found."""
        learned = await self.learn()
        runs = 1 + sum(2 for _ in self._references)
        self._show_progress(
            LearningProgress(
                done=runs, total=runs, writes=self.result.writes, seconds=self.result.learning_seconds
            )
        )
        self._began = self._clock.monotonic()
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
        self.result.seconds = self._clock.monotonic() - self._began
        self._check_judged()
        return self.result

    def _check_judged(self) -> None:
        """Raise Failure if no plan could be judged: no finding would look as if nothing was wrong."""
        not_judged = self.result.not_judged
        if self.result.runs and self.result.runs == not_judged.total() and not self.result.findings:
            ((problem, _),) = not_judged.most_common(1)
            raise Failure(f"none of {self.result.runs} plans could be judged: {problem}")

    async def _run_all(self, every: Iterator[Plan]) -> None:
        workers, are_tried = 0, asyncio.Event()

        async def work() -> None:
            nonlocal workers
            workers += 1
            while workers <= self._places.count and self._may_begin() and (plan := next(every, None)):
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
            adapting = self._places.adapt_to_machine(lambda: start_in(group, "plans", work()))
            await run_until(are_tried.wait(), adapting)

        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for _ in range(self._places.count):
                    start_in(group, "plans", work())
                start_in(group, "places", adapt(group))
        except ExceptionGroup as errors:  # such as that of a full disk, on which a finding cannot be written
            raise first_cause(errors) from errors

    def _may_begin(self) -> bool:
        """Return whether the budget of time and of plans allows another one."""
        seconds = self._options.seconds
        is_late = seconds is not None and self._clock.monotonic() - self._began >= seconds
        return not is_late and self.result.runs < self._options.plans

    async def _try(self, plan: Plan) -> None:
        """Run a plan, and report what is wrong. A run whose operator may repair that goes on, while the plan is repeated."""
        shown: asyncio.Future[_Suspicion] = asyncio.get_running_loop().create_future()

        async def goes_on(outcome: RunOutcome) -> float:
            if outcome.failed_steps or len(plan.disturbances) > 1:
                return 0.0  # a step that has failed is done again, and a pair may have a smaller plan
            if not self._may_be_repaired(new := self._new_of(self.problems(outcome))):
                return 0.0
            shown.set_result(self._suspicion(plan, new))
            return LATE_SECONDS

        run = start("the run of a plan", self._run(plan, goes_on=goes_on), group=self._group)
        either: Sequence[asyncio.Future[Any]] = (run, shown)
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if shown.done():
            self._count_covered(plan)
            await self._report_each(replace(shown.result(), late=run))
        elif suspicion := self._judge(await run):
            await self._report_each(suspicion)

    def _judge(self, outcome: RunOutcome) -> _Suspicion | None:
        """Count a run that has ended, and return what may be a finding."""
        if outcome.problem:
            self.result.not_judged[outcome.problem] += 1
            return None
        if outcome.is_applied:
            self._count_covered(outcome.plan)
        else:
            self.result.not_applied += 1
        problems = self.problems(outcome)
        if new := self._new_of(problems):
            return self._suspicion(outcome.plan, new)
        self._note_other_plan(outcome.plan, problems)
        return None

    def _new_of(self, problems: Iterable[OperatorProblem]) -> Sequence[OperatorProblem]:
        return [problem for problem in problems if problem.key not in self._seen]

    def _may_be_repaired(self, problems: Iterable[OperatorProblem]) -> bool:
        """Return whether an operator may repair some problems, unless the user has said how long that may take."""
        return self._options.patience is None and any(each.type in REPAIRABLE for each in problems)

    def _suspicion(self, plan: Plan, new: Sequence[OperatorProblem]) -> _Suspicion:
        keys = frozenset(problem.key for problem in new)
        self._seen |= keys  # so that no other plan reports them meanwhile
        return _Suspicion(
            plan=plan,
            keys=keys,
            repairable=frozenset(each.key for each in new if self._may_be_repaired([each])),
            seconds=self._clock.monotonic() - self._began,
        )

    async def _report_each(self, suspicion: _Suspicion) -> None:
        """Report problems with their smallest plans, which differ if the disturbances of a plan cause different ones."""
        keys = suspicion.keys
        while keys and (reported := await self._add_finding(suspicion, keys)):
            keys -= reported
        await self._report_others(keys)

    async def _report_others(self, keys: frozenset[tuple[str, ...]]) -> None:
        """Report what is not confirmed by the next other plan that has shown it; without one, a later plan may."""
        self._seen -= keys
        for key in keys:
            others = self._others.pop(key, {})
            for action in [*others]:
                plan, problems = others.pop(action)
                if new := self._new_of(problems):
                    self._others[key] = others
                    await self._report_each(self._suspicion(plan, new))
                    break

    def _count_covered(self, plan: Plan) -> None:
        if len(plan.disturbances) == 1:
            self.result.covered[_area(plan.disturbances[0])] += 1

    def _note_other_plan(self, plan: Plan, problems: Sequence[OperatorProblem]) -> None:
        """Count a plan that shows a finding again, or keep one for each action in case the first one is not confirmed."""
        keys = {problem.key for problem in problems}
        for index, finding in enumerate(self.result.findings):
            if finding.key & keys:
                self.result.findings[index] = replace(finding, others=finding.others + 1)
                return
        for key in keys:
            self._others.setdefault(key, {}).setdefault(plan.disturbances[0].action, (plan, problems))

    async def _add_finding(
        self, suspicion: _Suspicion, keys: frozenset[tuple[str, ...]]
    ) -> frozenset[tuple[str, ...]]:
        """Add a finding if problems are seen again, and return which; later, if the operator may repair some of them."""

        async def shows(smaller: Plan) -> bool:
            return bool(keys & {problem.key for problem in self.problems(await self._run(smaller))})

        least = await smallest(suspicion.plan, shows)
        late = self._longer_run(suspicion, least) if keys & suspicion.repairable else None
        repetitions = await asyncio.gather(*(self._run_again(least) for _ in range(REPETITIONS)))
        confirmed = [each for each in repetitions if keys & {problem.key for problem in self.problems(each)}]
        problems = [each for run in confirmed[:1] for each in self.problems(run) if each.key in keys]
        if late is not None and not any(each.type in REPAIRABLE for each in problems):
            await cancel_and_wait([late])
            late = None
        if not confirmed:
            self.result.not_seen_again += 1
            return frozenset()
        first = confirmed[0]
        finding = OperatorFinding(
            plan=least,
            problems=problems,
            history=what_happened(first.trace, problems),
            log=first.log,
            seconds=suspicion.seconds,
            repeated_seconds=self._clock.monotonic() - self._began,
            confirmed=len(confirmed),
            repetitions=REPETITIONS,
            runs=self._compared_runs(first),
        )
        if late is not None:
            self._show_progress(SuspicionProgress(finding=finding))
            await self._later(self._add_unless_repaired(finding, late))
        else:
            self._add(finding)
        return finding.key

    def _longer_run(self, suspicion: _Suspicion, plan: Plan) -> asyncio.Task[RunOutcome]:
        """Return a run that goes on for an operator that tries again late: the one that goes on already, or another one."""
        late = suspicion.late
        if late is not None and not late.cancelled() and plan == suspicion.plan:
            return late
        return start("a longer run", self._run_again(plan, late=LATE_SECONDS), group=self._group)

    async def _later(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something while other plans are tried."""
        if self._group is None:
            await work
        else:
            start_in(self._group, "confirmation of a finding", work)

    async def _add_unless_repaired(self, finding: OperatorFinding, late: asyncio.Task[RunOutcome]) -> None:
        """Add a finding without what the operator repairs when it tries again: many do so only after 5 to 30 seconds."""
        outcome = await late
        keys = {problem.key for problem in self.problems(outcome)}
        repairable = {problem.key for problem in finding.problems if problem.type in REPAIRABLE}
        is_tried_again = outcome.waited > 2 * self._limits.patience or finding.confirmed == REPETITIONS
        if outcome.problem or not outcome.is_applied or not is_tried_again or keys & repairable:
            self._add(finding)
            return
        self.result.repaired_later += len(repairable)
        self._show_progress(SuspicionProgress(finding=finding, is_repaired=True))
        self._repairs.update(repairable)
        remaining = [problem for problem in finding.problems if problem.key not in repairable]
        if remaining:
            self._add(replace(finding, problems=remaining))
        # Another plan may show the same for good, but to look at all of them takes long.
        await self._report_others(frozenset(key for key in repairable if self._repairs[key] < MAX_REPAIRS))

    def _compared_runs(self, outcome: RunOutcome) -> Mapping[str, RecordedRun]:
        if outcome.recording is None:
            return {}
        return runs_by_name(self._references[outcome.plan.ending].recording, outcome.recording)

    def _add(self, finding: OperatorFinding) -> None:
        self.result.findings.append(finding)
        self._show_finding(finding)

    async def replay(self, plan: Plan) -> tuple[RunOutcome, OperatorFinding | None]:
        """Run one plan, and return what is wrong with it; None if nothing is."""
        if plan.ending not in ("", *self._possible_endings()):
            raise UsageError(f"the scenario has nothing that can be deleted in this way: {plan}")
        await self.learn()
        began = self._clock.monotonic()
        outcome = await self._run_again(plan, late=_SLOWER * self._limits.patience)
        self.result.runs, self.result.seconds = 1, self._clock.monotonic() - began
        if not plan.disturbances:  # what is wrong undisturbed is no difference from the undisturbed runs
            return outcome, next((each for each in self.result.findings if each.plan == plan), None)
        problems = self.problems(outcome)
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

    async def _run(self, plan: Plan, goes_on: GoesOn | None = None) -> RunOutcome:
        """Run a plan, as one of the plans if it may go on, or before them to see whether it shows what another one has shown."""
        return await self._run_judged(self._places, plan, self._limits, goes_on)

    async def _run_again(self, plan: Plan, late: float = 0.0) -> RunOutcome:
        """Run a plan more slowly to confirm what it shows, and so many seconds more for an operator that tries again late."""
        limits, is_given = self._limits, self._options.patience is not None
        slower = replace(
            limits,
            # A longer run says what the operator repairs, unless the user has said how long to wait.
            patience=late or limits.patience * (_SLOWER if is_given else 1),
            pause=max(limits.pause * _SLOWER, late),
            max_seconds=limits.max_seconds * _SLOWER + late,
            is_recorded=self._options.has_reports,
        )
        return await self._run_judged(self._waiting_places if late else self._places, plan, slower)

    async def _run_judged(
        self, places: RunPlaces, plan: Plan, limits: RunLimits, goes_on: GoesOn | None = None
    ) -> RunOutcome:
        reference = self._references[plan.ending]
        return await self._run_in(
            places, plan, limits, lambda trace: not end_differences(trace, reference), goes_on
        )

    async def _run_in(
        self,
        places: RunPlaces,
        plan: Plan,
        limits: RunLimits,
        is_as_expected: Callable[[Trace], bool],
        goes_on: GoesOn | None = None,
    ) -> RunOutcome:
        """Run a plan when fewer runs are in progress than may be."""
        async with AsyncExitStack() as held:
            await held.enter_async_context(places.place(is_urgent=goes_on is None))

            async def goes_on_elsewhere(outcome: RunOutcome) -> float:
                """Leave the place if the run goes on: it mostly waits then."""
                seconds = 0.0 if goes_on is None else await goes_on(outcome)
                if seconds and self._waiting_places is not places:
                    await held.aclose()
                    await held.enter_async_context(self._waiting_places.place())
                return seconds

            return await self._runner.run(plan, limits, is_as_expected, goes_on_elsewhere)

    def problems(self, outcome: RunOutcome) -> Sequence[OperatorProblem]:
        if outcome.problem:
            return ()
        return find_problems(outcome, self._references[outcome.plan.ending], self._scenario.invariants)


async def _all_of(runs: Sequence[Coroutine[Any, Any, RunOutcome]]) -> Sequence[RunOutcome]:
    """Return what all runs were; if one fails, end the others, and raise its error."""
    failures: list[Failure] = []
    has_failed = asyncio.Event()

    async def noted(run: Coroutine[Any, Any, RunOutcome]) -> Sequence[RunOutcome]:
        try:
            return [await run]
        except Failure as error:
            failures.append(error)
            has_failed.set()
            return []

    async def all_noted() -> Sequence[RunOutcome]:
        return [*chain.from_iterable(await asyncio.gather(*map(noted, runs)))]

    outcomes = await run_until(has_failed.wait(), all_noted())
    if failures or outcomes is None:
        raise failures[0]
    return outcomes


def _last_lines(log: str) -> str:
    """Return the last lines of what an operator printed; a line may have a whole stack."""
    lines = log.strip().splitlines()[-_PRINTED_LINES:]
    return "\n".join(
        line if len(line) <= _PRINTED_CHARACTERS else f"{line[:_PRINTED_CHARACTERS]}..." for line in lines
    )


def _area(disturbance: Disturbance) -> str:
    """Return what a disturbance covers a part of."""
    if disturbance.event is not None:
        return "events x kinds"
    if disturbance.action in (plans.HOLD, plans.DROP, plans.STALE_START, plans.RECREATE_STALE, plans.LAG):
        return "old caches"
    return "writes x moments" if disturbance.write is not None else "disturbances after steps"


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
