import asyncio
import errno
import os
from types import SimpleNamespace

import pytest

from mockube.exploration.explorer import FIRST_LIMITS, Explorer, ForkRunner, Options
from mockube.exploration.judgements import OperatorProblem
from mockube.exploration.plan_run import RunOutcome
from mockube.exploration.plans import UNDISTURBED, Disturbance, plan_of
from mockube.exploration.trace import Trace
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
            user="operator",
            starter=SimpleNamespace(text="./manager"),
        )
        self.in_progress = self.most = self.runs = 0
        self._problem = problem

    async def run(self, plan, *_):
        self.runs += 1
        self.in_progress += 1
        self.most = max(self.most, self.in_progress)
        await yield_to_loop()
        if self._problem and self.runs > 1:
            await asyncio.Event().wait()
        self.in_progress -= 1
        return outcome_of(plan, problem=self._problem)


class ExplorerOfNames(Explorer):
    """An explorer to which each plan shows the problems that a test has named; without a cluster."""

    def __init__(self, shown, **arguments):
        super().__init__(FakeForkRunner(), Options(jobs=1), **arguments)
        self._shown = shown

    async def _run(self, plan, slow=1):
        del slow
        return outcome_of(plan)

    def problems(self, outcome):
        return [OperatorProblem(type="end", text=key, key=(key,)) for key in self._shown(outcome.plan)]


@pytest.mark.parametrize("jobs", [1, 2])
async def test_jobs_limit_undisturbed_runs(jobs):
    runner = FakeForkRunner()
    await Explorer(runner, Options(jobs=jobs)).learn()
    assert runner.most == jobs


async def test_undisturbed_run_that_fails_ends_the_others():
    runner = FakeForkRunner(problem="it exited with code 1")
    with pytest.raises(Failure, match=r"\./manager does not run undisturbed: it exited with code 1"):
        await Explorer(runner, Options(jobs=1)).learn()


async def test_both_problems_of_a_pair_are_reported_with_their_own_plans():
    texts = {CRASH.action: "a", RESTART.action: "b"}
    reported = []
    explorer = ExplorerOfNames(
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
    explorer = ExplorerOfNames(lambda _: next(shown))
    await explorer._try(plan_of([CRASH]))
    assert (explorer.result.findings, explorer.result.not_seen_again) == ([], 1)
    await explorer._try(plan_of([RESTART]))
    assert len(explorer.result.findings) == 1


async def test_run_with_a_problem_is_counted_as_not_judged():
    explorer = Explorer(FakeForkRunner(problem="requests cannot be followed"), Options(jobs=1))
    explorer._references[""] = None
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
    setting = SimpleNamespace(clock=InstantClock(), user="operator")
    outcome = await ForkRunner(setting, FakeRoot(error), []).run(UNDISTURBED, FIRST_LIMITS, lambda _: True)
    assert problem in outcome.problem


async def test_finding_that_cannot_be_written_ends_the_exploration_with_its_error():
    def write(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    explorer = ExplorerOfNames(lambda _: ["a"], show_finding=write)
    with pytest.raises(OSError, match="No space left on device"):
        await explorer._run_all(iter([plan_of([CRASH])]), 0.0)


@pytest.mark.parametrize(("seconds", "most"), [(0.1, 10), (6, 60), (70, 140)])
def test_disturbed_run_may_take_longer_than_an_undisturbed_one(seconds, most):
    outcome = outcome_of(UNDISTURBED)
    outcome.trace.last_activity = seconds
    limits = Explorer(FakeForkRunner(), Options())._learn_limits([outcome])
    assert limits.max_seconds == most
