"""The undisturbed runs, and what is learned from them: the operator's writes and events, what is not the same each time, how long a run takes."""

import asyncio
import os
from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from errno import EADDRINUSE
from itertools import chain, count
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.component_base.suggestions import did_you_mean
from mockube.component_base.supervision import run_until
from mockube.failure import Failure
from mockube.operators.end_state import Identity, end_state, label_of, learn_varying
from mockube.operators.process import HEAD_BYTES, TAIL_BYTES
from mockube.operators.writes import LEASES

from . import plans
from .exploration import Exploration, LearningProgress, Options, ShowFinding, ShowProgress
from .findings import OperatorFinding, what_happened
from .idle_reads import FEW_PER_SECOND
from .judged_runs import FIRST_LIMITS, JudgedRuns
from .judgements import (
    STAYS,
    OperatorProblem,
    UndisturbedRuns,
    fields_written_in_both,
    find_problems,
    most_frequent_write,
)
from .old_lists import cached_resources, recreated_steps
from .plans import WITHOUT_STEPS, Learned, Plan, count_writes, rank_writes
from .received_events import learn_events
from .run_outcome import RunLimits, RunOutcome
from .run_recording import runs_by_name
from .scenario import InvalidScenario
from .trace import Trace
from .webhooks import has_webhook

DELETION_SECONDS: Final = 10.0
"""How long an undisturbed deletion may take after the last write."""
MAX_OWNED: Final = 20
_PORT_HINT: Final = (
    " (several runs take place at the same time: let it listen on no fixed port, as controller-runtime does with"
    " --metrics-bind-address=0 --health-probe-bind-address=0, or give it ownNetwork: true)"
)
_MUCH_PRINTED: Final = 1 << 20
_PRINTED_LINES: Final = 20
_PRINTED_CHARACTERS: Final = 400
_PODS: Final = "Pod"
_SETTLE: Final = (0.15, 3.0)
_PATIENCE: Final = (2.0, 10.0)
_LONGEST: Final = (10.0, 60.0)
_MORE_READS: Final = 5
"""So many times as often as undisturbed, an operator may read while nothing changes."""
_PAUSES: Final = 3
"""So many times the longest pause of undisturbed runs, a condition of a step is waited for while nothing is written."""


class ScenarioFails(Failure):
    """The scenario does not succeed undisturbed. The message has several lines: those that the operator printed, too."""


class Learner:
    """Runs a scenario undisturbed, and gives the judged runs what they are compared with."""

    def __init__(
        self,
        runs: JudgedRuns,
        options: Options,
        result: Exploration,
        show_progress: ShowProgress,
        report: ShowFinding,
    ) -> None:
        self._runs, self._options, self._result = runs, options, result
        self._show_progress, self._report = show_progress, report
        self._clock = runs.runner.setting.clock
        self._scenario = runs.runner.setting.scenario
        self._without = self._scenario.without
        self.seen: set[tuple[str, ...]] = set()
        """The keys of what is wrong undisturbed."""

    async def learn(self) -> Learned:
        """Run the scenario undisturbed, twice, and return what plans are made of; raise Failure if that does not work."""
        began = self._clock.monotonic()
        endings = ["", *self.possible_endings()]
        runs = [
            self._undisturbed(Plan(ending=ending), is_recorded=self._options.has_reports and is_first)
            for ending in endings
            for is_first in (True, False)
        ]
        *outcomes, alone = await self._all_counted([*runs, self._undisturbed(WITHOUT_STEPS)])
        pairs = dict(zip(endings, zip(outcomes[::2], outcomes[1::2], strict=True), strict=True))
        self._runs.limits = self._learn_limits(each for each in outcomes if each.is_quiet)
        for ending, both in pairs.items():
            self._runs.references[ending] = self._reference(*both, alone)
            if not all(each.is_quiet for each in both):  # there is no end to compare with
                self._without |= {name for name, each in plans.ENDINGS.items() if each == ending}
        changes = chain.from_iterable(outcome.trace.changes for outcome in outcomes)
        written = {change.identity[0]: change.after or change.before for change in changes}
        await self._runs.runner.prepare(tree for tree in written.values() if tree is not None)
        self._result.learning_seconds = self._clock.monotonic() - began
        return self._learned(*pairs[""])

    async def _all_counted(self, runs: Sequence[Coroutine[Any, Any, RunOutcome]]) -> Sequence[RunOutcome]:
        """Return what undisturbed runs were, and show how many have ended."""
        done = count(1)

        async def counted(run: Coroutine[Any, Any, RunOutcome]) -> RunOutcome:
            outcome = await run
            self._show_progress(LearningProgress(done=next(done), total=len(runs)))
            return outcome

        return await _all_of([*map(counted, runs)])

    def possible_endings(self) -> Iterator[str]:
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

        def is_at_end(outcome: RunOutcome) -> bool:
            is_deleted = not plan.ending or self._subject_in(outcome.trace) is None
            return is_deleted and not outcome.failed_expectations

        outcome = await self._runs.run_in(self._runs.places, plan, limits, is_at_end)
        command = self._runs.runner.setting.starter.text
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
            verb, resource, times = most_frequent_write(outcome.trace)
            raise Failure(
                f"{command} never becomes quiet undisturbed: it had still written after {FIRST_LIMITS.max_seconds:g} s,"
                f" {times} times {verb} of {resource}"
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
        varying, user = learn_varying(ends[0], ends[1], counted), self._runs.runner.setting.identity.user
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
            if problem.type not in ("end", STAYS) and problem.key not in self.seen
        }
        if unique:
            self.seen |= {*unique}
            finding = OperatorFinding(
                plan=outcome.plan,
                problems=[*unique.values()],
                history=what_happened(outcome.trace, [*unique.values()]),
                log=outcome.log,
                confirmed=sum(any(problem.key in unique for problem in each) for each in found),
                repetitions=len(found),
                runs=runs_by_name(outcome.recording),
            )
            self._report(finding)

    def _learn_limits(self, outcomes: Iterable[RunOutcome]) -> RunLimits:
        quiet = [*outcomes]
        traces = [outcome.trace for outcome in quiet]
        gap = max((gap for trace in traces for gap in trace.gaps[1:]), default=0.0)
        settle = _within(3 * gap + 0.1, _SETTLE)
        max_seconds = max(trace.last_activity - trace.began for trace in traces)
        patience = self._options.patience
        extra_seconds = patience or 0.0
        if patience is None:
            patience = _within(8 * settle, _PATIENCE)
        return RunLimits(
            settle=settle,
            patience=patience,
            pause=max(_PAUSES * gap, patience),
            idle_reads=max(FEW_PER_SECOND, _MORE_READS * max(each.idle_reads_per_second for each in quiet)),
            max_seconds=max(_within(10 * max_seconds + 5 * settle, _LONGEST), 2 * max_seconds)
            + extra_seconds,
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
        reference = self._runs.references[""]
        writes = [each for each in first.trace.requests if each.is_write and not each.is_error]
        counted = count_writes([(each.verb, each.resource, each.namespace) for each in writes])
        always = [write for write in counted if write.number < counts[1][write.group]]
        changed = {each.audit_id: each.identity for each in reversed(first.trace.changes)}
        self._result.writes = len(always)
        self._result.notes += [f"{line} is not the same each time" for line in reference.varying.lines()]
        self._result.notes += self._invariants_without_objects([first.trace, second.trace])
        if first.log_bytes >= _MUCH_PRINTED:
            self._result.notes.append(
                f"the operator printed {first.log_bytes >> 20} MiB in an undisturbed run:"
                f" the first {HEAD_BYTES >> 10} KiB and the last {TAIL_BYTES >> 10} KiB of each log are kept"
            )
        for group in sorted(
            group for group in {*counts[0], *counts[1]} if counts[0][group] != counts[1][group]
        ):
            verb, resource, namespace = group
            place = f" in {namespace}" if namespace else ""
            self._result.notes.append(
                f"{verb} of {resource}{place} is sent {counts[0][group]} times, or {counts[1][group]} times"
            )
        subject = self._scenario.subject
        identity = subject.find({*first.trace.touched, *first.trace.objects}) if subject is not None else None
        if subject is not None and identity is None:
            kind, _, name = subject.target.partition("/")
            others = (each[2] for each in first.trace.touched if each[0] == kind)
            raise InvalidScenario(
                f"subject: there is no {subject} in an undisturbed run{did_you_mean(name, others)}"
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

    def _invariants_without_objects(self, traces: Sequence[Trace]) -> Iterator[str]:
        """Yield a note for each invariant that no undisturbed run evaluates: it may name a kind that does not exist."""
        kinds = {change.identity[0] for trace in traces for change in trace.changes}
        for rule in self._scenario.invariants:
            if not any(map(rule.applies_to, kinds)):
                hint = did_you_mean(rule.kinds[0], {each.partition(".")[0] for each in kinds})
                yield f"no undisturbed run changes a {' or '.join(rule.kinds)}, to which the invariant {rule.name} applies{hint}"

    def _owned(self, outcome: RunOutcome) -> Sequence[tuple[str, str]]:
        """Return the objects that the operator has made and that still exist, with a star for what is random."""
        trace, user = outcome.trace, self._runs.runner.setting.identity.user
        objects = trace.objects_made_by(user)
        labels = end_state(objects, self._runs.references[""].varying).labels.values()
        return sorted({(f"{kind}/{label}", namespace) for kind, namespace, label in labels})[:MAX_OWNED]


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


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
