import asyncio
import errno
import os
from itertools import chain, count, repeat
from math import inf
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mockube.client.kinds import CONFIG_MAPS
from mockube.client.verbs import ObjectList
from mockube.component_base.clock import SteppedClock
from mockube.exploration import run_places
from mockube.exploration.exploration import Options
from mockube.exploration.explorer import Explorer
from mockube.exploration.fork_runner import ForkRunner
from mockube.exploration.judged_runs import FIRST_LIMITS, JudgedRuns
from mockube.exploration.judgements import OperatorProblem
from mockube.exploration.plans import UNDISTURBED, Disturbance, plan_of
from mockube.exploration.run_outcome import RunOutcome, is_never_enough
from mockube.exploration.run_places import FEWEST, Machine
from mockube.exploration.suspicions import MAX_REPAIRS, REPETITIONS
from mockube.exploration.trace import ArrangedObjects, Trace
from mockube.failure import Failure
from tests.support.event_loop import yield_to_loop
from tests.support.instant_clock import InstantClock

CRASH, RESTART = Disturbance(action="restart", step=0), Disturbance(action="second operator", step=0)
PAIR = plan_of([CRASH, RESTART])


def outcome_of(plan, **fields):
    trace = Trace(clock=InstantClock(), operator="operator", objects={})
    return RunOutcome(plan=plan, trace=trace, **fields)


class FakeForkRunner:
    """Runs plans without a cluster, and counts those in progress."""

    def __init__(self, problem=""):
        scenario = SimpleNamespace(act=(), subject=None, invariants=(), without=frozenset())
        self.setting = SimpleNamespace(
            clock=InstantClock(),
            scenario=scenario,
            identity=SimpleNamespace(user="operator"),
            starter=SimpleNamespace(text="./manager"),
        )
        self.in_progress = self.most = self.runs = 0
        self._problem = problem

    async def prepare(self, objects):
        self.prepared = [*objects]

    async def run(self, plan, *_):
        self.runs += 1
        self.in_progress += 1
        self.most = max(self.most, self.in_progress)
        await yield_to_loop()
        if self._problem and self.runs > 1:
            await asyncio.Event().wait()
        self.in_progress -= 1
        return outcome_of(plan, problem=self._problem)


class RunsOfNames(JudgedRuns):
    """Runs without a cluster, in which each plan shows the problems that a test has named."""

    def __init__(self, shown, options, repairs_after):
        super().__init__(FakeForkRunner(), options)
        self.shown, self.repairs_after = shown, repairs_after
        self.limits = replace(self.limits, patience=2.0)

    async def run(self, plan, goes_on=None, **_):
        outcome = self.waited(plan, self.limits.patience)
        seconds = 0.0 if goes_on is None else await goes_on(outcome)
        await yield_to_loop()  # the run is looked at before it ends
        return replace(outcome, waited=min(self.repairs_after, seconds)) if seconds else outcome

    async def run_again(self, plan, late=0.0, **_):
        return self.waited(plan, late or self.limits.patience)

    def waited(self, plan, seconds):
        return outcome_of(plan, exits=self.shown(plan), waited=min(self.repairs_after, seconds))

    def problems(self, outcome):
        is_repaired = outcome.waited >= self.repairs_after
        return [
            OperatorProblem(type=key, text=key, key=(key,))
            for key in outcome.exits
            if not (is_repaired and key == "end")
        ]


def explorer_of(shown, patience=2.0, repairs_after=inf, type_=RunsOfNames, **arguments):
    options = Options(jobs=1, patience=patience)
    runs = type_(shown, options, repairs_after)
    return Explorer(runs.runner, options, runs=runs, **arguments), runs


@pytest.mark.parametrize("jobs", [1, 2])
async def test_jobs_limit_undisturbed_runs(jobs):
    runner = FakeForkRunner()
    await Explorer(runner, Options(jobs=jobs)).learn()
    assert runner.most == jobs


async def test_undisturbed_run_that_fails_ends_the_others():
    runner = FakeForkRunner(problem="it exited with code 1")
    with pytest.raises(Failure, match=r"\./manager does not run undisturbed: it exited with code 1"):
        await Explorer(runner, Options(jobs=1)).learn()


async def test_port_in_use_is_reported_with_the_flags_that_avoid_it():
    runner = FakeForkRunner(problem="it exited with code 1: listen tcp :8080: bind: address already in use")
    with pytest.raises(
        Failure, match=r"in use \(several runs take place at the same time: .* ownNetwork: true\)"
    ):
        await Explorer(runner, Options(jobs=1)).learn()


async def test_both_problems_of_a_pair_are_reported_with_their_own_plans():
    texts = {CRASH.action: "a", RESTART.action: "b"}
    reported = []
    explorer, _ = explorer_of(
        lambda plan: [texts[each.action] for each in plan.disturbances], show_finding=reported.append
    )
    await explorer._try(PAIR)
    assert [(finding.plan.disturbances, finding.problems[0].text) for finding in reported] == [
        ([CRASH], "a"),
        ([RESTART], "b"),
    ]
    assert explorer.result.findings == reported


async def test_problem_that_was_not_seen_again_is_reported_by_a_later_plan():
    shown = iter([["a"], [], [], [], ["a"], ["a"], ["a"], ["a"], ["a"]])
    explorer, _ = explorer_of(lambda _: next(shown))
    await explorer._try(plan_of([CRASH]))
    assert (explorer.result.findings, explorer.result.not_seen_again) == ([], 1)
    await explorer._try(plan_of([RESTART]))
    assert len(explorer.result.findings) == 1


async def test_repetition_that_shows_most_is_reported():
    shown = iter([["a", "b"], ["a"], ["a", "b"], ["a"]])
    explorer, _ = explorer_of(lambda _: next(shown))
    await explorer._try(plan_of([CRASH]))
    (finding,) = explorer.result.findings
    assert [problem.text for problem in finding.problems] == ["a", "b"]


@pytest.mark.parametrize("shows_again", [True, False])
async def test_plan_that_shows_the_same_meanwhile_is_repeated_if_the_first_one_shows_it_no_more(shows_again):
    explorer, runs = explorer_of(lambda _: ["a"])
    repeated = []

    async def run_again(plan, **_):
        if not repeated:
            await explorer._try(plan_of([RESTART]))  # it is not repeated now
        repeated.append(plan.disturbances[0].action)
        is_first = plan.disturbances[0].action == CRASH.action
        return outcome_of(plan, exits=["a"] if shows_again and not is_first else [])

    runs.run_again = run_again
    await explorer._try(plan_of([CRASH]))
    assert repeated == [CRASH.action] * REPETITIONS + [RESTART.action] * REPETITIONS
    assert [each.plan.disturbances for each in explorer.result.findings] == [[RESTART]] * shows_again
    assert explorer.result.not_seen_again == (1 if shows_again else 2)


@pytest.mark.parametrize(
    ("repairs_after", "shown", "found"),
    [
        pytest.param(30.0, ["end"], [], id="later"),
        pytest.param(30.0, ["end", "rights"], [["rights"]], id="one of two"),
        pytest.param(inf, ["end"], [["end"]], id="never"),
    ],
)
async def test_problem_that_the_operator_repairs_later_is_left_out(repairs_after, shown, found):
    progress = []
    explorer, _ = explorer_of(
        lambda _: shown, patience=None, repairs_after=repairs_after, show_progress=progress.append
    )
    await explorer._try(plan_of([CRASH]))
    assert [[problem.text for problem in each.problems] for each in explorer.result.findings] == found
    assert explorer.result.repaired_later == (0 if repairs_after == inf else 1)
    assert [each.is_repaired for each in progress] == [False, True][: 1 + explorer.result.repaired_later]
    assert [problem.text for problem in progress[0].finding.problems] == shown


async def test_problem_that_the_operator_repairs_may_be_one_of_a_later_plan():
    explorer, runs = explorer_of(lambda _: ["end"], patience=None, repairs_after=30.0)
    await explorer._try(plan_of([CRASH]))
    runs.repairs_after = inf
    await explorer._try(plan_of([RESTART]))
    assert [each.plan.disturbances for each in explorer.result.findings] == [[RESTART]]


async def test_problem_that_the_operator_always_repairs_is_looked_at_a_few_times():
    explorer, _ = explorer_of(lambda _: ["end"], patience=None, repairs_after=30.0)
    for _ in range(MAX_REPAIRS + 2):
        await explorer._try(plan_of([CRASH]))
    assert explorer.result.repaired_later == MAX_REPAIRS


class EndlessRuns(RunsOfNames):
    """A run that gives the operator time to repair goes on until it is cancelled."""

    async def run(self, plan, goes_on=None, **_):
        outcome = self.waited(plan, self.limits.patience)
        if goes_on is not None and await goes_on(outcome):
            await asyncio.Event().wait()
        return outcome

    async def run_again(self, plan, late=0.0, **_):
        if late:
            await asyncio.Event().wait()
        return await super().run_again(plan)


@pytest.mark.parametrize(
    ("shown", "shown_again", "found"),
    [
        pytest.param(["end"], [], [], id="not seen again"),
        pytest.param(["end", "rights"], ["rights"], [["rights"]], id="nothing to repair is left"),
    ],
)
async def test_longer_run_ends_if_the_repetitions_leave_nothing_to_repair(shown, shown_again, found):
    remaining = chain([shown], repeat(shown_again))
    explorer, _ = explorer_of(lambda _: next(remaining), patience=None, type_=EndlessRuns)
    await asyncio.wait_for(explorer._try(plan_of([CRASH])), 5)
    assert [[problem.text for problem in each.problems] for each in explorer.result.findings] == found
    assert asyncio.all_tasks() == {asyncio.current_task()}


class RunsThatGoOn(RunsOfNames):
    """A run that gives the operator time to repair goes on until some problems were not seen again."""

    result = None

    async def run(self, plan, goes_on=None, **_):
        outcome = self.waited(plan, self.limits.patience)
        if goes_on is not None and await goes_on(outcome):
            while not self.result.not_seen_again:
                await yield_to_loop()
        return outcome


async def test_longer_run_goes_on_for_one_problem_when_another_one_is_not_seen_again():
    shown = chain([["end", "expectation"]], repeat(["end"], REPETITIONS), repeat([]))
    explorer, runs = explorer_of(lambda _: next(shown), patience=None, type_=RunsThatGoOn)
    runs.result = explorer.result
    await asyncio.wait_for(explorer._run_all(iter([plan_of([CRASH])])), 5)
    assert [[problem.text for problem in each.problems] for each in explorer.result.findings] == [["end"]]


class RunsThatAreNeverQuiet(RunsOfNames):
    """A run that gives the operator time to repair is not quiet any more, so that its end is not looked at."""

    async def run(self, plan, goes_on=None, **_):
        outcome = self.waited(plan, self.limits.patience)
        is_longer = goes_on is not None and await goes_on(outcome)
        await yield_to_loop()
        return replace(outcome, is_quiet=False, exits=[]) if is_longer else outcome


async def test_problem_stays_if_the_longer_run_is_never_quiet():
    explorer, _ = explorer_of(lambda _: ["end"], patience=None, type_=RunsThatAreNeverQuiet)
    await explorer._try(plan_of([CRASH]))
    assert [each.problems[0].text for each in explorer.result.findings] == ["end"]


class RunnerOfLateRepairs(FakeForkRunner):
    """Runs of plans never end as expected, and go on as long as they may; notes when runs begin and end."""

    def __init__(self):
        super().__init__()
        self.notes = []

    async def run(self, plan, _limits, _is_at_end, goes_on, _is_enough):
        self.notes.append("begins")
        outcome = outcome_of(plan, failed_expectations=["configmap/a exists"])
        if await goes_on(outcome):
            self.notes.append("goes on")
            await yield_to_loop(100)
        self.notes.append("ends")
        return outcome


async def test_run_that_shows_a_problem_goes_on_beside_its_repetitions():
    runner = RunnerOfLateRepairs()
    explorer = Explorer(runner, Options(jobs=2))
    explorer._runs.references[""] = SimpleNamespace(problems=(), trace=outcome_of(UNDISTURBED).trace)
    explorer._runs.problems = lambda _: [OperatorProblem(type="end", text="a", key=("a",))]
    await explorer._try(plan_of([CRASH]))
    again = ["begins", "ends"] * REPETITIONS
    assert sorted(runner.notes) == sorted(["begins", "goes on", *again, "ends"])
    assert runner.notes[-1] == "ends"
    assert runner.notes.index("goes on") < runner.notes.index("ends")
    assert len(explorer.result.findings) == 1


class CrowdedForkRunner(FakeForkRunner):
    """Its runs end when there are more of them than at the start."""

    def __init__(self):
        super().__init__()
        self._is_crowded = asyncio.Event()

    async def run(self, plan, *_):
        self.in_progress += 1
        if self.in_progress > FEWEST:
            self._is_crowded.set()
        await self._is_crowded.wait()
        return outcome_of(plan, problem="it says nothing")


async def test_more_plans_run_while_the_processors_are_idle(monkeypatch):
    monkeypatch.setattr(run_places, "cores", lambda: 1)
    idle_seconds = count()
    monkeypatch.setattr(Machine, "read", lambda: Machine(next(idle_seconds), 0.9))
    explorer = Explorer(CrowdedForkRunner(), Options(plans=20))
    explorer._runs.references[""] = None
    await asyncio.wait_for(explorer._run_all(repeat(UNDISTURBED)), 5)
    assert explorer.result.runs == 20


async def test_run_with_a_problem_is_counted_as_not_judged():
    explorer = Explorer(FakeForkRunner(problem="requests cannot be followed"), Options(jobs=1))
    explorer._runs.references[""] = None
    await explorer._try(UNDISTURBED)
    assert explorer.result.not_judged == {"requests cannot be followed": 1}
    assert explorer.result.not_applied == 0


class FakeRoot:
    """A control plane that cannot be forked."""

    def __init__(self, error):
        self._error = error

    def fork(self):
        raise self._error


class RunnerOfPlans(FakeForkRunner):
    """Each undisturbed run succeeds, and those of plans have a problem, but for some."""

    def __init__(self, successes):
        super().__init__()
        self._successes = successes
        self.setting.scenario.act = (None,)

    async def run(self, plan, *_):
        if not plan.disturbances:
            return outcome_of(plan)
        self._successes -= 1
        return outcome_of(plan, problem="" if self._successes >= 0 else "it cannot be forked")


async def test_exploration_without_a_plan_fails():
    with pytest.raises(Failure, match="no plan was tried: the scenario allows none that is possible"):
        await Explorer(RunnerOfPlans(0), Options(seconds=0.0)).explore()


async def test_exploration_without_a_plan_that_was_judged_fails():
    with pytest.raises(Failure, match="none of 2 plans could be judged: it cannot be forked"):
        await Explorer(RunnerOfPlans(0), Options(plans=2)).explore()
    found = await Explorer(RunnerOfPlans(1), Options(plans=2)).explore()
    assert found.not_judged == {"it cannot be forked": 1}


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(Failure("the fork did not start within 30 s"), "the fork did not start", id="slow"),
        pytest.param(OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "Resource temporarily unavailable", id="limit of processes"),
    ],
)  # fmt: skip
async def test_fork_that_fails_is_a_run_that_is_not_judged(error, problem):
    setting = SimpleNamespace(clock=InstantClock(), identity=SimpleNamespace(user="operator"))
    runner = ForkRunner(setting, FakeRoot(error), [], None)
    outcome = await runner.run(UNDISTURBED, FIRST_LIMITS, lambda _: True)
    assert problem in outcome.problem


class ListingClient:
    """Counts the lists of an empty cluster."""

    def __init__(self):
        self.lists = 0

    async def list(self, *_, **__):
        self.lists += 1
        return ObjectList([], "3", "")


@pytest.mark.parametrize(
    ("revision", "seconds", "is_listed_again"),
    [
        pytest.param(9, 0, False, id="shortly after"),
        pytest.param(8, 0, False, id="at once"),
        pytest.param(7, 0, True, id="a newer fork was listed"),
        pytest.param(9, 61, True, id="Changes may be compacted"),
    ],
)
async def test_runs_share_what_was_listed_shortly_before(revision, seconds, is_listed_again):
    clock, client = SteppedClock(), ListingClient()
    shared = ArrangedObjects(objects={}, revision=8, request_version="3", seconds=clock.monotonic())
    runner = ForkRunner(SimpleNamespace(clock=clock), None, [CONFIG_MAPS], shared)
    clock.advance(seconds)
    arranged = await runner._arranged_before(client, revision)
    assert (arranged is not shared, client.lists > 0) == (is_listed_again, is_listed_again)
    assert arranged.revision <= revision


async def test_finding_that_cannot_be_written_ends_the_exploration_with_its_error():
    def write(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    explorer, _ = explorer_of(lambda _: ["a"], show_finding=write)
    with pytest.raises(OSError, match="No space left on device"):
        await explorer._run_all(iter([plan_of([CRASH])]))


@pytest.mark.parametrize(("seconds", "most"), [(0.1, 10), (6, 60), (70, 140)])
def test_disturbed_run_may_take_longer_than_an_undisturbed_one(seconds, most):
    outcome = outcome_of(UNDISTURBED)
    outcome.trace.last_activity = seconds
    limits = Explorer(FakeForkRunner(), Options())._learner._learn_limits([outcome])
    assert limits.max_seconds == most


class RunnerOfEnds(FakeForkRunner):
    """Notes of each run whether it need not wait for another end, when it shows some problems."""

    def __init__(self, shown):
        super().__init__()
        self.shown, self.ends = shown, []

    async def run(self, plan, limits, is_at_end, *_):
        outcome = outcome_of(plan, failed_expectations=["configmap/a exists"], exits=self.shown)
        self.ends.append((limits.is_late, is_at_end(outcome)))
        return outcome


@pytest.mark.parametrize(
    ("patience", "shown_again", "ends_early"),
    [
        pytest.param(None, ["end", "rights"], True, id="all"),
        pytest.param(None, ["rights"], False, id="one of two"),
        pytest.param(2.0, ["end", "rights"], False, id="the user says how long to wait"),
    ],
)
async def test_repetition_that_shows_the_problems_does_not_wait_for_another_end(
    patience, shown_again, ends_early
):
    runner = RunnerOfEnds(shown_again)
    explorer = Explorer(runner, Options(jobs=2, patience=patience))
    explorer._runs.references[""] = SimpleNamespace(problems=(), trace=outcome_of(UNDISTURBED).trace)
    explorer._runs.problems = lambda outcome: [
        OperatorProblem(type=key, text=key, key=(key,)) for key in outcome.exits
    ]
    first = [OperatorProblem(type=key, text=key, key=(key,)) for key in ("end", "rights")]
    await explorer._suspicions.report(explorer._suspicions.suspect(plan_of([CRASH]), first))
    assert [at_end for is_late, at_end in runner.ends[: 1 + REPETITIONS] if not is_late] == [
        ends_early
    ] * REPETITIONS
    assert not any(at_end for is_late, at_end in runner.ends if is_late)


class RunsWithDeletions(RunsOfNames):
    """A run shows a wrong deletion long before its end, and the same and another problem there."""

    began_before_end = repeated = 0

    async def run(self, plan, is_enough=is_never_enough, **_):
        for deletions in (["deletion"], ["deletion", "deletion of another"]):
            assert not is_enough(outcome_of(plan, exits=deletions))
            await yield_to_loop()
        await yield_to_loop(20)
        self.began_before_end = self.repeated
        return outcome_of(plan, exits=[*deletions, "rights"])

    async def run_again(self, plan, until, **_):
        self.repeated += 1
        await yield_to_loop(5)  # the first run shows more meanwhile
        return outcome_of(plan, exits=sorted(name for (name,) in until))

    def deletion_problems(self, outcome):
        return [each for each in self.problems(outcome) if each.type.startswith("deletion")]


async def test_wrong_deletion_is_repeated_while_its_run_goes_on():
    explorer, runs = explorer_of(lambda _: [], patience=None, type_=RunsWithDeletions)
    await explorer._run_all(iter([plan_of([CRASH])]))
    assert (runs.began_before_end, runs.repeated) == (REPETITIONS, 2 * REPETITIONS)
    found = [[problem.text for problem in each.problems] for each in explorer.result.findings]
    assert found == [["deletion", "deletion of another"], ["rights"]]
    assert [each.others for each in explorer.result.findings] == [0, 0]


@pytest.mark.parametrize(
    ("deleted", "keys", "is_enough"),
    [
        pytest.param(["a", "b"], ["a"], True, id="more"),
        pytest.param(["a"], ["a", "b"], False, id="one of two"),
        pytest.param(["a"], [], False, id="nothing is looked for"),
    ],
)
def test_run_shows_enough_when_all_deletions_are_there(deleted, keys, is_enough):
    runs = JudgedRuns(FakeForkRunner(), Options())
    runs.deletion_problems = lambda _: [
        OperatorProblem(type="deletion", text=key, key=(key,)) for key in deleted
    ]
    says = runs.shows_by_deletions(frozenset((key,) for key in keys))
    assert says(outcome_of(UNDISTURBED)) is is_enough
