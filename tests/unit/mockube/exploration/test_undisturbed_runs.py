from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mockube.exploration.exploration import LearningProgress, Options
from mockube.exploration.explorer import Explorer
from mockube.exploration.judged_runs import JudgedRuns
from mockube.exploration.learning import ScenarioFails
from mockube.exploration.plans import DELETE, Disturbance, Plan, plan_of
from mockube.exploration.run_outcome import RunOutcome
from mockube.exploration.scenario import InvalidScenario, read_scenario
from mockube.exploration.trace import Trace
from mockube.failure import Failure, UsageError
from tests.support.instant_clock import InstantClock

SITE = {
    "apiVersion": "example.com/v1",
    "kind": "Site",
    "metadata": {"name": "blog", "namespace": "default", "finalizers": ["example.com/stop"]},
}
IDENTITY = ("Site.example.com", "default", "blog")


class FakeForkRunner:
    """Returns outcomes without runs: `objects` are those at the end, by the ending of a plan."""

    def __init__(self, scenario, objects, **of_deletion):
        self.setting = SimpleNamespace(
            clock=InstantClock(),
            scenario=scenario,
            identity=SimpleNamespace(user="operator"),
            starter=SimpleNamespace(text="./manager"),
        )
        self.arranged = {}
        self._objects, self._of_deletion = objects, of_deletion

    async def prepare(self, objects):
        self.prepared = [*objects]

    async def run(self, plan, *_):
        objects = {IDENTITY: SITE} if plan.ending in self._objects else {}
        trace = Trace(clock=self.setting.clock, operator="operator", objects=objects)
        return RunOutcome(plan=plan, trace=trace, **(self._of_deletion if plan.ending else {}))


def explorer(tmp_path, objects, *, without=(), show_progress=lambda _: None, **of_deletion):
    scenario = read_scenario({"act": [{"apply": SITE}], "without": [*without]}, tmp_path)
    return Explorer(FakeForkRunner(scenario, objects, **of_deletion), Options(), show_progress)


async def test_resource_that_an_undisturbed_deletion_does_not_end_is_reported(tmp_path):
    exploring = explorer(tmp_path, {"", DELETE})
    await exploring.learn()
    (finding,) = exploring.result.findings
    assert finding.plan == Plan(ending=DELETE)
    assert [problem.text for problem in finding.problems] == [
        "Site.example.com blog in default still exists after its deletion: it has the finalizers example.com/stop"
    ]
    assert (await exploring.replay(finding.plan))[1] == finding


async def test_deletion_after_which_an_operator_is_never_quiet_is_reported_and_not_used(tmp_path):
    exploring = explorer(tmp_path, {""}, is_quiet=False)
    learned = await exploring.learn()
    (finding,) = exploring.result.findings
    assert [problem.text for problem in finding.problems] == ["it never becomes quiet"]
    assert "delete the resource" in learned.without


async def test_deletion_that_ends_is_no_finding(tmp_path):
    exploring = explorer(tmp_path, {""})
    learned = await exploring.learn()
    assert exploring.result.findings == []
    assert (learned.subject, [*learned.without]) == ("Site.example.com/blog", [])
    assert {ending: each.ending for ending, each in exploring._runs.references.items()} == {
        "": "",
        DELETE: DELETE,
    }


async def test_undisturbed_runs_are_counted_while_they_end(tmp_path):
    shown = []
    await explorer(tmp_path, {""}, show_progress=shown.append).learn()
    assert shown == [LearningProgress(done=number, total=5) for number in range(1, 6)]


@pytest.mark.parametrize(
    ("log_bytes", "notes"),
    [
        pytest.param((1 << 20) - 1, [], id="less"),
        pytest.param(
            5 << 20,
            [
                "the operator printed 5 MiB in an undisturbed run: the first 16 KiB and the last 64 KiB of each log are kept"
            ],
            id="much",
        ),
    ],
)
async def test_much_that_an_operator_prints_is_a_note(log_bytes, notes, tmp_path):
    exploring = explorer(tmp_path, {"", DELETE})
    outcome_of = exploring._runs.runner.run

    async def run(plan, *_):
        outcome = await outcome_of(plan)
        outcome.log_bytes = log_bytes
        return outcome

    exploring._runs.runner.run = run
    await exploring.learn()
    assert exploring.result.notes == notes


async def test_invariant_of_a_kind_that_no_run_changes_is_a_note(tmp_path):
    exploring = explorer(tmp_path, {"", DELETE})
    rules = [
        {"name": name, "kinds": [kind], "expression": "true"}
        for name, kind in (("a", "Sites"), ("b", "*"), ("c", "Site"))
    ]
    invariants = read_scenario({"act": [{"apply": SITE}], "invariants": rules}, tmp_path).invariants
    exploring._learner._scenario = replace(exploring._learner._scenario, invariants=invariants)
    trace = Trace(clock=InstantClock(), operator="operator", objects={})
    change = {"apiVersion": "example.com/v1", "kind": "Site", "name": "blog", "namespace": "default"}
    patch = [{"op": "replace", "path": "", "value": SITE}]
    trace.add_change({"spec": {"revision": 1, "type": "ADDED", "object": change, "patch": patch}})
    assert [*exploring._learner._invariants_without_objects([trace])] == [
        'no undisturbed run changes a Sites, to which the invariant a applies: did you mean "Site"?'
    ]


async def test_subject_that_no_run_has_is_refused(tmp_path):
    with pytest.raises(InvalidScenario, match="subject: there is no Site"):
        await explorer(tmp_path, {}).learn()


async def test_plan_whose_deletion_the_scenario_leaves_out_is_refused(tmp_path):
    with pytest.raises(UsageError, match="nothing that can be deleted in this way"):
        await explorer(tmp_path, {""}, without=["delete the resource"]).replay(Plan(ending=DELETE))


async def test_step_that_fails_undisturbed_has_the_log(tmp_path):
    exploring = explorer(tmp_path, {""}, failed_steps=["step 1"], log="one\ntwo\n")
    with pytest.raises(ScenarioFails) as raised:
        await exploring.learn()
    assert isinstance(raised.value, Failure)
    assert str(raised.value).splitlines()[1:] == ["the operator printed:", "one", "two"]


class RunnerOfOwnObjects(FakeForkRunner):
    """Each operator makes its configuration when it starts, and a page for its site."""

    async def run(self, plan, *arguments):
        outcome = await super().run(plan, *arguments)
        for name in ("config", *(["page"] if plan.has_steps else [])):
            tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
            about = {"apiVersion": "v1", "kind": "ConfigMap", "name": name}
            patch = [{"op": "replace", "path": "", "value": tree}]
            spec = {"revision": 1, "type": "ADDED", "object": about, "author": {"user": "operator"}}
            outcome.trace.add_change({"spec": {**spec, "patch": patch}})
        return outcome


async def test_run_without_steps_shows_what_an_operator_makes_for_itself(tmp_path):
    scenario = read_scenario({"act": [{"apply": SITE}]}, tmp_path)
    runs = JudgedRuns(RunnerOfOwnObjects(scenario, {""}), Options())
    await Explorer(runs.runner, Options(), runs=runs).learn()
    outcome = await runs.run(plan_of([Disturbance(action="delete the resource", step=0)]))
    assert [each.text for each in runs.problems(outcome)] == [
        "ConfigMap page stays when its resource is deleted"
    ]
