import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import NotFound
from mockube.client.verbs import ObjectList
from mockube.component_base.clock import SteppedClock
from mockube.exploration.plan_run import ObjectMissing, PlanRun, RunLimits, StepFailed
from mockube.exploration.plans import (
    DELETE_OWNED,
    DELETE_SUBJECT,
    LOSE_LEASE,
    RECREATE,
    RESTART,
    SECOND,
    STALE_START,
    UNDISTURBED,
    Disturbance,
    plan_of,
)
from mockube.exploration.scenario import Expectation, ObjectRef, ScenarioStep, StepOperation
from mockube.exploration.trace import OperatorRequest, Trace
from mockube.operators.process import OperatorEnd, OperatorLog
from tests.support.event_loop import yield_to_loop
from tests.support.instant_clock import InstantClock

EARLIER, NOW, LATER = (f"2026-01-01T00:00:0{second}.000000Z" for second in (1, 2, 3))
RESTARTED = Disturbance(action=RESTART, step=0)


class FakeClient:
    """A server whose clock shows NOW, without objects."""

    async def get(self, *_, **__):
        return {"status": {"time": NOW}}

    async def list(self, *_, **__):
        return ObjectList([], "1", "")

    async def create(self, *_, **__):
        return {"metadata": {"name": "fault-1"}}

    async def delete(self, *_, **__):
        raise NotFound("it is gone")


class FakeOperator:
    def __init__(self, code=None):
        self.code, self.log = code, OperatorLog()

    def stop(self, grace):
        return OperatorEnd(code=0, ignored_term=grace > 0 and self.code is None)


class FakeStarter:
    """Starts operators that send a request at once, or that have exited."""

    def __init__(self, trace, code=None):
        self._trace, self._code = trace, code
        self.started = 0

    def start(self, *_):
        self.started += 1
        if self._code is None:
            self._trace.requests.append(request(LATER))
        return FakeOperator(self._code)


def request(began):
    return OperatorRequest(
        seconds=0.0, verb="watch", resource="pods", namespace="", name="", code=200, fault="",
        is_answered_by_fault=False, message="", began=began,
    )  # fmt: skip


def new_run(plan=UNDISTURBED, code=None, clock=None, type_=PlanRun, **fields):
    clock = clock or InstantClock()
    trace = Trace(clock=clock, operator="operator", objects={})
    scenario = SimpleNamespace(environment={}, **fields)
    starter = FakeStarter(trace, code)
    setting = SimpleNamespace(
        scenario=scenario,
        starter=starter,
        clock=clock,
        access=SimpleNamespace(),
        user="operator",
    )
    limits = RunLimits(settle=0.0, patience=0.0, max_seconds=60.0)
    run = type_(setting, limits, plan, FakeClient(), trace, Path("run-1"))
    return run, trace, starter


@pytest.mark.parametrize(
    ("code", "started"),
    [pytest.param(None, 0, id="runs"), pytest.param(0, 1, id="success"), pytest.param(1, 1, id="error")],
)
async def test_operator_that_has_exited_is_started_again(code, started):
    run, _, starter = new_run()
    run._operators.append(FakeOperator(code))
    await run._restart_ended()
    assert starter.started == started
    assert len(run.outcome.exits) == started


async def test_operator_is_replaced_by_one_disturbance_at_a_time():
    run, _, starter = new_run()
    run._operators.append(FakeOperator())
    await asyncio.gather(run.restart(RESTARTED), run.at_crash(RESTARTED, "explore-0"))
    assert (starter.started, len(run._operators)) == (2, 1)


@pytest.mark.parametrize(
    ("began", "is_heard"),
    [pytest.param(EARLIER, False, id="watch of the one before"), pytest.param(NOW, True, id="own request")],
)
async def test_operator_is_heard_by_requests_that_begin_after_its_start(began, is_heard):
    run, trace, _ = new_run()
    trace.requests.append(request(began))
    assert run._is_heard(NOW, 0, 0) is is_heard


async def test_operator_is_heard_by_a_write_that_is_held_back():
    run, trace, _ = new_run()
    trace.hits["explore-0"] = 1
    assert run._is_heard(NOW, 0, 0)


async def test_second_operator_that_exits_leaves_the_run_as_not_applied():
    run, _, _ = new_run(code=2)
    first = FakeOperator()
    run._operators.append(first)
    await run._apply(Disturbance(action=SECOND, step=0))
    assert (run.outcome.is_applied, run.outcome.problem) == (False, "")
    assert run.outcome.exits == ["it exited with code 2"]
    assert run._operators[-1] is first


@pytest.mark.parametrize(("hits", "is_applied"), [pytest.param(0, False), pytest.param(1, True)])
async def test_lease_is_lost_when_it_is_renewed(hits, is_applied, monkeypatch):
    monkeypatch.setattr("mockube.exploration.plan_run._MOMENT_SECONDS", 0.0)
    run, trace, _ = new_run()
    trace.hits["fault-1"] = hits
    await run._apply(Disturbance(action=LOSE_LEASE, step=0))
    assert run.outcome.is_applied is is_applied


async def test_start_with_old_lists_needs_a_write():
    run, _, starter = new_run()
    run._operators.append(FakeOperator())
    await run.at_crash_with_stale_start(Disturbance(action=STALE_START), "explore-0")
    assert (run.outcome.is_applied, starter.started) == (False, 1)


async def test_termination_is_not_ignored_while_a_write_is_held_back():
    run, trace, _ = new_run()
    run._operators.append(FakeOperator())
    run._armed["explore-0"] = RESTARTED
    trace.hits["explore-0"] = 1
    await run.restart(RESTARTED)
    assert not run.outcome.ignored_term
    run._armed.clear()
    await run.restart(RESTARTED)
    assert run.outcome.ignored_term


SITE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}}
SCALE = StepOperation(type="kubectl", arguments=["scale", "deployment/site"])


@pytest.fixture
def failing_steps(monkeypatch):
    async def fail(*_):
        raise StepFailed("kubectl scale deployment/site: not found")

    monkeypatch.setattr("mockube.exploration.plan_run.do_operation", fail)


def run_of_step(plan, operation=SCALE):
    return new_run(
        plan,
        act=[ScenarioStep(name="scale", operation=operation)],
        subject=ObjectRef(target="ConfigMap/site"),
    )[0]


@pytest.mark.usefixtures("failing_steps")
async def test_step_that_fails_after_a_disturbance_is_a_problem_of_the_run():
    run = run_of_step(plan_of([RESTARTED]))
    await run._act()
    assert run.outcome.failed_steps == ["step 1: kubectl scale deployment/site: not found"]
    with pytest.raises(StepFailed):
        await run_of_step(UNDISTURBED)._act()


@pytest.mark.usefixtures("failing_steps")
@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(SCALE, id="needs the resource"),
        pytest.param(StepOperation(type="apply", objects=[SITE]), id="would create it again"),
    ],
)
async def test_step_after_the_deletion_of_the_resource_may_fail(operation):
    run = run_of_step(plan_of([RESTARTED]), operation)
    run._is_subject_deleted = True
    run._operators.append(FakeOperator(0))
    await run._act()
    assert run.outcome.failed_steps == []


def site(kind="Site", group="example.com", **metadata):
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "blog", **metadata}}


async def test_other_objects_of_a_step_are_applied_after_the_deletion_of_the_resource(monkeypatch):
    applied = []

    async def do(_requests, _kubeconfig, operation):
        applied.extend(operation.objects)
        raise StepFailed("the namespace is being deleted")

    monkeypatch.setattr("mockube.exploration.plan_run.do_operation", do)
    run = new_run(plan_of([RESTARTED]), subject=ObjectRef(target="Site.example.com/blog"))[0]
    run._is_subject_deleted = True
    others = [site("Page"), site(group="other.com"), site(namespace="other"), site(name="news")]
    await run._do(StepOperation(type="apply", objects=[others[0], site(), *others[1:]]))
    assert applied == others


def test_object_of_a_disturbance_has_exactly_its_kind():
    run, trace, _ = new_run()
    trace.objects[("Service.serving.knative.dev", "default", "web")] = {}
    disturbance = Disturbance(action=DELETE_OWNED, step=0, object="Service/web", namespace="default")
    with pytest.raises(ObjectMissing, match="there is no Service/web"):
        run._find(disturbance)
    trace.objects[("Service", "default", "web")] = {}
    assert run._find(disturbance) == ("Service", "default", "web")


class RunOfConditions(PlanRun):
    """A run whose conditions come after 50 seconds each."""

    async def _do(self, _operation):
        return ""

    async def _is_met(self, _expectation, seconds):
        self._clock.advance(min(seconds, 50))
        return seconds >= 50


@pytest.mark.parametrize(
    ("plan", "failed"),
    [
        pytest.param(UNDISTURBED, [], id="undisturbed"),
        pytest.param(plan_of([RESTARTED]), ["step 1: Site/b jsonpath={.a}=1 was not so"], id="disturbed"),
    ],
)
async def test_conditions_of_an_undisturbed_run_may_take_as_long_as_the_scenario_says(plan, failed):
    until = [
        Expectation(object=ObjectRef(target=f"Site/{name}"), condition="jsonpath={.a}=1") for name in "ab"
    ]
    step = ScenarioStep(name="", operation=SCALE, until=until)
    run, _, _ = new_run(plan, type_=RunOfConditions, clock=SteppedClock(), act=[step], timeout=300.0)
    await run._act()
    assert run.outcome.failed_steps == failed
    if not failed:
        await run._quiet()


async def test_events_are_not_held_back_from_an_operator_whose_finalizer_keeps_the_resource():
    run, _, _ = new_run()
    arrived = asyncio.Event()

    async def release():
        arrived.set()

    async def create():
        await arrived.wait()

    run._releases.append(release)
    run._later(create())
    await run._quiet()
    assert arrived.is_set()


class FakeRequests:
    """A server with one resource, whose finalizer keeps it until `gone` is set."""

    def __init__(self):
        self.gone, self.created = asyncio.Event(), []

    async def get(self, *_):
        return {**SITE, "metadata": {**SITE["metadata"], "resourceVersion": "1"}}

    async def delete(self, *_, **__):
        await yield_to_loop()

    async def wait_gone(self, *_):
        await self.gone.wait()

    async def apply(self, tree, _namespace):
        self.created.append(tree)


@pytest.mark.parametrize(
    ("actions", "created", "is_applied"),
    [
        pytest.param([RECREATE], 1, True, id="created anew"),
        pytest.param([RECREATE, DELETE_SUBJECT], 0, True, id="deleted while it is kept"),
        pytest.param([DELETE_SUBJECT, RECREATE], 0, False, id="deleted before"),
    ],
)
async def test_resource_that_was_deleted_for_good_is_not_created_anew(actions, created, is_applied):
    run, trace, _ = new_run(subject=ObjectRef(target="ConfigMap/site"))
    run._requests = requests = FakeRequests()
    trace.objects["ConfigMap", "default", "site"] = SITE
    for action in actions:
        subject = {"object": "ConfigMap/site", "namespace": "default"}
        await run._apply(Disturbance(action=action, step=0, **subject))
    requests.gone.set()
    await run._quiet()
    assert (len(requests.created), run.outcome.is_applied) == (created, is_applied)


async def test_step_waits_until_the_resource_is_created_anew(monkeypatch):
    done = []

    async def do(*_):
        done.append("step")

    async def create():
        await yield_to_loop()
        done.append("creation")

    monkeypatch.setattr("mockube.exploration.plan_run.do_operation", do)
    run = run_of_step(plan_of([]))
    run._later(create())
    await run._act()
    assert done == ["creation", "step"]
