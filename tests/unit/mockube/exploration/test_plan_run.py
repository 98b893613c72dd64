import asyncio
import os
import threading
from math import inf
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mockube.apimachinery.status import NotFound
from mockube.client.verbs import ObjectList
from mockube.component_base.clock import SteppedClock
from mockube.component_base.supervision import run_until
from mockube.exploration.change import Change
from mockube.exploration.disturbances import ACTIONS, ObjectMissing, apply, find_object, restart
from mockube.exploration.moments import arm, at_crash, at_crash_with_stale_start, at_event, at_expired_token
from mockube.exploration.old_lists import recreated_steps
from mockube.exploration.plan_run import PlanRun
from mockube.exploration.plans import (
    CRASH_BEFORE,
    DELETE_OWNED,
    DELETE_SUBJECT,
    DOWN,
    EVICT,
    EXPIRE,
    HOLD,
    HOLD_EVENT,
    LOSE_EVENT,
    LOSE_LEASE,
    NODE,
    RECREATE,
    REORDER,
    RESTART,
    SECOND,
    STALE_START,
    UNDISTURBED,
    Disturbance,
    OperatorEvent,
    OperatorWrite,
    plan_of,
)
from mockube.exploration.run_outcome import RunLimits, RunOutcome, ends_now
from mockube.exploration.scenario import Expectation, ObjectRef, ScenarioStep, StepOperation
from mockube.exploration.steps import StepFailed
from mockube.exploration.trace import OperatorRequest, Trace
from mockube.operators.process import OperatorEnd, OperatorLog
from tests.support.event_loop import yield_to_loop
from tests.support.instant_clock import InstantClock

EARLIER, NOW, LATER = (f"2026-01-01T00:00:0{second}.000000Z" for second in (1, 2, 3))
RESTARTED = Disturbance(action=RESTART, step=0)
CRASH = Disturbance(
    action=CRASH_BEFORE, write=OperatorWrite(verb="create", resource="pods", namespace="default", number=0)
)


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


NO_PROCESS = 1 << 30


class FakeOperator:
    def __init__(self, code=None, pid=NO_PROCESS):
        self.code, self.pid, self.log = code, pid, OperatorLog()

    def stop(self, grace):
        return OperatorEnd(code=0, ignored_term=grace > 0 and self.code is None)


class FakeStarter:
    """Starts operators that send a request at once, or that have exited."""

    def __init__(self, trace, code=None):
        self._trace, self._code = trace, code
        self.started = 0

    def start(self, *_, **__):
        self.started += 1
        if self._code is None:
            self._trace.requests.append(request(LATER))
        return FakeOperator(self._code)


def request(began):
    return OperatorRequest(
        seconds=0.0, verb="watch", resource="pods", namespace="", name="", code=200, fault="",
        is_answered_by_fault=False, message="", began=began,
    )  # fmt: skip


def new_run(plan=UNDISTURBED, code=None, clock=None, type_=PlanRun, settle=0.0, **fields):
    clock = clock or InstantClock()
    trace = Trace(clock=clock, operator="operator", objects={})
    scenario = SimpleNamespace(environment={}, own_network=False, **fields)
    starter = FakeStarter(trace, code)
    setting = SimpleNamespace(
        scenario=scenario,
        starter=starter,
        clock=clock,
        access=SimpleNamespace(),
        identity=SimpleNamespace(user="operator", pods=()),
        folder=Path("run-1"),
        names=None,
    )
    limits = RunLimits(settle=settle, patience=0.0, max_seconds=60.0)
    run = type_(setting, limits, plan, FakeClient(), trace, Path("run-1"))
    return run, trace, starter


class QuietStarter(FakeStarter):
    """Starts operators that print something and send no request."""

    def __init__(self, code):
        self._code = code

    def start(self, *_, **__):
        operator = FakeOperator(self._code)
        operator.log.write(b"starting\n" * 1_000_000 + b"no flag was given\n")
        return operator


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        pytest.param(None, "it sent no request within 60 s: no flag was given", id="hangs"),
        pytest.param(2, "it exited with code 2: no flag was given", id="exits"),
    ],
)
async def test_operator_without_a_request_is_a_problem_with_its_last_line(code, problem):
    run, _, _ = new_run(type_=RunOfStepped, clock=SteppedClock())
    run.setting.starter = QuietStarter(code)
    assert await run.start_operator() == problem
    assert len(run.operators[0].log.text()) < 100_000


@pytest.mark.parametrize(
    ("code", "started"),
    [pytest.param(None, 0, id="runs"), pytest.param(0, 1, id="success"), pytest.param(1, 1, id="error")],
)
async def test_operator_that_has_exited_is_started_again(code, started):
    run, _, starter = new_run()
    run.operators.append(FakeOperator(code))
    await run.restart_ended()
    assert starter.started == started
    assert len(run.outcome.exits) == started


async def test_operator_is_replaced_by_one_disturbance_at_a_time():
    run, _, starter = new_run()
    run.operators.append(FakeOperator())
    await asyncio.gather(restart(run, RESTARTED), at_crash(run, RESTARTED, "explore-0"))
    assert (starter.started, len(run.operators)) == (2, 1)


async def test_fault_of_a_crash_stays_so_that_the_waiting_write_is_not_executed():
    run, _, _ = new_run(plan_of([CRASH]))
    deleted = []
    run.delete_fault = deleted.append
    run.operators.append(FakeOperator())
    await at_crash(run, CRASH, "explore-0")
    assert deleted == []


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
    run.operators.append(first)
    await apply(run, Disturbance(action=SECOND, step=0))
    assert (run.outcome.is_applied, run.outcome.problem) == (False, "")
    assert run.outcome.exits == ["it exited with code 2"]
    assert run.operators[-1] is first


@pytest.mark.parametrize(("hits", "is_applied"), [pytest.param(0, False), pytest.param(1, True)])
async def test_lease_is_lost_when_it_is_renewed(hits, is_applied, monkeypatch):
    monkeypatch.setattr("mockube.exploration.disturbances._MOMENT_SECONDS", 0.0)
    run, trace, _ = new_run()
    trace.hits["fault-1"] = hits
    await apply(run, Disturbance(action=LOSE_LEASE, step=0))
    assert run.outcome.is_applied is is_applied


@pytest.mark.parametrize(
    "past",
    [
        pytest.param({}, id="writes"),
        pytest.param({"steps": 1}, id="steps"),
        pytest.param({"is_deleting": True}, id="deletion"),
    ],
)
async def test_start_with_old_lists_needs_a_past(past):
    run, _, starter = new_run(subject=None)
    run.operators.append(FakeOperator())
    disturbance = Disturbance(action=STALE_START, resource="pods", **past)
    await at_crash_with_stale_start(run, disturbance, "explore-0")
    assert (run.outcome.is_applied, starter.started) == (False, 1)


LISTED = [
    ("list", "pods", "?limit=500&resourceVersion=0"),
    ("list", "jobs.batch", "?resourceVersion=0"),
    ("list", "secrets", ""),
    ("watch", "secrets", "?resourceVersion=0"),
]


@pytest.mark.parametrize(
    ("resource", "old"),
    [pytest.param("*", ["jobs.batch", "pods"], id="all"), pytest.param("pods", ["pods"], id="one")],
)
async def test_lists_from_the_cache_of_a_server_are_from_before_the_last_step(resource, old):
    run, trace, starter = new_run()
    client = recording(run)
    run.operators.append(FakeOperator())
    trace.requests += [replace(request(EARLIER), verb=verb, resource=of, uri=uri) for verb, of, uri in LISTED]
    trace.step_revisions += [5, 9]
    await apply(run, Disturbance(action=STALE_START, step=1, resource=resource, steps=1))
    assert [each["match"]["resource"] for each in client.created] == old
    assert all(each["stale"] == {"revision": 9} for each in client.created)
    assert [(hidden.resource, hidden.revision) for hidden in trace.hidden.values()] == [(resource, 9)]
    assert starter.started == 1
    await run.release()
    assert len(client.deleted) == len(old)


async def test_lists_are_from_when_the_resource_was_being_deleted():
    run, trace, _ = new_run(subject=ObjectRef(target="ConfigMap/site"))
    client = recording(run)
    deleting = {**SITE, "metadata": {**SITE["metadata"], "deletionTimestamp": NOW}}
    versions = [("ADDED", None, SITE), ("MODIFIED", SITE, deleting), ("MODIFIED", deleting, deleting)]
    versions += [("DELETED", deleting, None), ("ADDED", None, SITE)]
    trace.changes += [
        replace(
            change_of("configmaps", revision),
            type=type_,
            identity=("ConfigMap", "default", "site"),
            before=before,
            after=after,
        )
        for revision, (type_, before, after) in enumerate(versions, start=3)
    ]
    trace.step_revisions += [2, 3, 6]
    await apply(run, Disturbance(action=STALE_START, step=2, resource="configmaps", is_deleting=True))
    assert [each["stale"] for each in client.created] == [{"revision": 4}]
    assert recreated_steps(trace, ("ConfigMap", "default", "site")) == [2]


async def test_termination_is_not_ignored_while_a_write_is_held_back():
    run, trace, _ = new_run()
    run.operators.append(FakeOperator())
    run.armed["explore-0"] = RESTARTED
    trace.hits["explore-0"] = 1
    await restart(run, RESTARTED)
    assert not run.outcome.ignored_term
    run.armed.clear()
    await restart(run, RESTARTED)
    assert run.outcome.ignored_term


SITE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}}
SITE_IDENTITY = ("ConfigMap", "default", "site")
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
@pytest.mark.parametrize("plan", [plan_of([RESTARTED]), UNDISTURBED])
async def test_step_that_fails_is_a_problem_of_the_run(plan):
    run = run_of_step(plan)
    await run._act()
    assert run.outcome.failed_steps == ["step 1: kubectl scale deployment/site: not found"]


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
    run.is_subject_deleted = True
    run.operators.append(FakeOperator(0))
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
    run.is_subject_deleted = True
    others = [site("Page"), site(group="other.com"), site(namespace="other"), site(name="news")]
    await run._do(StepOperation(type="apply", objects=[others[0], site(), *others[1:]]))
    assert applied == others


def test_object_of_a_disturbance_has_exactly_its_kind():
    run, trace, _ = new_run()
    trace.objects[("Service.serving.knative.dev", "default", "web")] = {}
    disturbance = Disturbance(action=DELETE_OWNED, step=0, object="Service/web", namespace="default")
    with pytest.raises(ObjectMissing, match="there is no Service/web"):
        find_object(run, disturbance)
    trace.objects[("Service", "default", "web")] = {}
    assert find_object(run, disturbance) == ("Service", "default", "web")


class RunOfConditions(PlanRun):
    """A run whose conditions come after 50 seconds each."""

    async def _do(self, _operation):
        return ""

    async def _is_met(self, _expectation, seconds):
        self.clock.advance(min(seconds, 50))
        return seconds >= 50


@pytest.mark.parametrize(
    ("plan", "failed"),
    [
        pytest.param(UNDISTURBED, [], id="undisturbed"),
        pytest.param(
            plan_of([RESTARTED]), ["step 1: waited in vain for Site/b jsonpath={.a}=1"], id="disturbed"
        ),
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
        await run.quiet()


async def test_events_are_not_held_back_from_an_operator_whose_finalizer_keeps_the_resource():
    run, _, _ = new_run()
    arrived = asyncio.Event()

    async def release():
        arrived.set()

    async def create():
        await arrived.wait()

    run.releases.append(release)
    run.later(create())
    await run.quiet()
    assert arrived.is_set()


@pytest.mark.parametrize(
    ("pid", "code", "seconds"),
    [
        pytest.param(lambda: NO_PROCESS, None, 2, id="waits"),
        pytest.param(os.getpid, None, 10, id="works"),
        pytest.param(os.getpid, 0, 2, id="has ended"),
    ],
)
async def test_run_is_quiet_later_if_the_operator_works(pid, code, seconds):
    clock = SteppedClock()
    run, trace, _ = new_run(clock=clock, settle=2.0)
    run.operators.append(FakeOperator(code, pid()))
    trace.note("a write")
    while not await run._is_idle():
        clock.advance(1)
    assert trace.quiet_seconds() == seconds


class FakeRequests:
    """A server with one resource, whose finalizer keeps it until `remove`."""

    def __init__(self, trace):
        self._objects, self.created = trace.objects, []
        self._objects[SITE_IDENTITY] = SITE

    async def get(self, *_):
        return {**SITE, "metadata": {**SITE["metadata"], "resourceVersion": "1"}}

    async def delete(self, *_, **__):
        await yield_to_loop()

    def remove(self):
        del self._objects[SITE_IDENTITY]

    async def apply(self, tree, _namespace):
        self.created.append(tree)
        self._objects[SITE_IDENTITY] = {**tree, "metadata": {**tree["metadata"], "uid": "another"}}


@pytest.mark.parametrize(
    ("actions", "created", "is_applied"),
    [
        pytest.param([RECREATE], 1, True, id="created anew"),
        pytest.param([RECREATE, RECREATE], 1, True, id="created anew twice at once"),
        pytest.param([RECREATE, DELETE_SUBJECT], 0, True, id="deleted while it is kept"),
        pytest.param([DELETE_SUBJECT, RECREATE], 0, False, id="deleted before"),
    ],
)
async def test_resource_is_created_anew_unless_it_was_deleted_for_good(actions, created, is_applied):
    run, trace, _ = new_run(subject=ObjectRef(target="ConfigMap/site"))
    run.requests = requests = FakeRequests(trace)
    for action in actions:
        await apply(run, Disturbance(action=action, step=0, object="ConfigMap/site", namespace="default"))
    requests.remove()
    await run.quiet()
    assert (len(requests.created), run.outcome.is_applied) == (created, is_applied)


async def test_resource_that_a_step_deletes_is_not_created_anew():
    run, trace, _ = new_run(subject=ObjectRef(target="ConfigMap/site"))
    run.requests = requests = FakeRequests(trace)
    deleting = {**SITE, "metadata": {**SITE["metadata"], "deletionTimestamp": NOW, "resourceVersion": "1"}}

    async def get(*_):
        return deleting

    requests.get = get
    await apply(run, Disturbance(action=RECREATE, step=0, object="ConfigMap/site", namespace="default"))
    requests.remove()
    await run.quiet()
    assert (requests.created, run.outcome.is_applied) == ([], False)


async def test_step_waits_until_the_resource_is_created_anew(monkeypatch):
    done = []

    async def do(*_):
        done.append("step")

    async def create():
        await yield_to_loop()
        done.append("creation")

    monkeypatch.setattr("mockube.exploration.plan_run.do_operation", do)
    run = run_of_step(plan_of([]))
    run.later(create())
    await run._act()
    assert done == ["creation", "step"]


EVENT = OperatorEvent(type="ADDED", resource="pods", namespace="default", name="web-*", number=2)


class RecordingClient(FakeClient):
    """Records the specs of Faults, and the names of those that were deleted."""

    def __init__(self):
        self.created, self.deleted = [], []

    async def create(self, _kind, tree, **_):
        self.created.append(tree["spec"])
        return {"metadata": {"name": f"fault-{len(self.created)}"}}

    async def delete(self, _kind, key):
        self.deleted.append(key.name)


def recording(run):
    run.client = client = RecordingClient()
    return client


@pytest.mark.parametrize(
    ("action", "effect"), [(HOLD_EVENT, "hold"), (REORDER, "hold"), (LOSE_EVENT, "drop")]
)
async def test_fault_selects_the_event(action, effect):
    run, _, _ = new_run(plan_of([Disturbance(action=action, event=EVENT, resource="jobs")]))
    client = recording(run)
    await arm(run)
    assert client.created == [
        {
            "match": {"user": "operator", "verbs": ["watch"], "resource": "pods"},
            effect: {"fromEvent": {"types": ["ADDED"], "namespace": "default", "name": "web-*", "skip": 2}},
        }
    ]
    assert [*run.armed] == ["explore-event-0"]


def change_of(resource, revision):
    return Change(
        seconds=0.0, revision=revision, type="ADDED", identity=("Job", "default", "a"), resource=resource,
        user="a", author="a", verb="create", before=None, after=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "is_released"),
    [
        pytest.param([("jobs", 8)], True, id="later one"),
        pytest.param([("jobs", 7)], False, id="earlier one"),
        pytest.param([("pods", 8)], False, id="another resource"),
    ],
)
async def test_reordered_events_arrive_after_a_later_one_of_another_resource(changes, is_released):
    run, trace, _ = new_run(clock=SteppedClock())
    client = recording(run)
    trace.event_revisions["f"] = 7
    trace.changes += [change_of(*each) for each in changes]
    await at_event(run, Disturbance(action=REORDER, event=EVENT, resource="jobs"), "f")
    await yield_to_loop(5)
    assert client.deleted == (["f"] if is_released else [])
    await run.release()
    assert client.deleted == ["f"]
    for task in run.pending:
        task.cancel()
    await asyncio.gather(*run.pending, return_exceptions=True)


async def test_lost_events_end_the_watch_with_410_when_everything_is_quiet():
    run, trace, _ = new_run()
    client = recording(run)
    trace.event_revisions["f"] = 7
    await at_event(run, Disturbance(action=LOSE_EVENT, event=EVENT), "f")
    assert client.deleted == []
    assert (trace.hidden["f"].resource, trace.hidden["f"].revision) == ("pods", 6)
    assert trace.hidden["f"].ended == inf
    await run.release()
    assert trace.hidden["f"].ended < inf
    assert client.deleted == ["f", "fault-1"]
    assert client.created[0]["refuse"] == {"status": 410}


async def test_condition_that_waits_for_what_is_held_back_comes():
    class RunThatWaits(PlanRun):
        async def _is_met(self, _expectation, _seconds):
            await released.wait()
            return True

    released = asyncio.Event()
    run, _, _ = new_run(plan_of([Disturbance(action=HOLD_EVENT, event=EVENT)]), type_=RunThatWaits)

    async def release():
        released.set()

    async def hold_later():
        await yield_to_loop()
        run.releases.append(release)

    run.later(hold_later())
    assert await run._wait(Expectation(object=ObjectRef(target="Site/a"), condition="jsonpath={.a}=1"), 10)


class RunOfNever(PlanRun):
    """A run in which no condition comes, and whose pauses advance its clock at once."""

    async def pause(self, seconds):
        self.clock.advance(seconds)
        await yield_to_loop()

    async def _is_met(self, _expectation, _seconds):
        await asyncio.Event().wait()


async def test_condition_is_given_up_when_nothing_is_written_for_much_longer_than_undisturbed():
    clock = SteppedClock()
    run, trace, _ = new_run(plan_of([RESTARTED]), type_=RunOfNever, clock=clock)
    run.limits = replace(run.limits, pause=15.0)
    trace.touch()
    began = clock.monotonic()
    assert not await run._wait(Expectation(object=ObjectRef(target="Site/a"), condition="gone"), 60)
    assert clock.monotonic() - began == pytest.approx(15.0, abs=1.0)


def run_of_two_steps(**arguments):
    until = [Expectation(object=ObjectRef(target="Site/a"), condition="jsonpath={.a}=1")]
    steps = [ScenarioStep(name=str(number), operation=SCALE, until=until) for number in range(2)]
    held = Disturbance(action=HOLD, resource="pods", steps=2)
    return new_run(plan_of([held]), act=steps, timeout=30.0, **arguments)


class RunThatSees(PlanRun):
    """A run whose conditions come when nothing is held back."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.done = []

    async def _do(self, _operation):
        self.done.append(f"step {len(self.done) + 1}")
        return ""

    async def _is_met(self, _expectation, _seconds):
        await self.wait_until(lambda: bool(self.client.deleted), 30)
        return bool(self.client.deleted)


async def test_events_are_held_back_until_after_the_second_step():
    run, trace, _ = run_of_two_steps(type_=RunThatSees)
    client = recording(run)
    await run._act()
    assert run.done == ["step 1", "step 2"]
    assert (run.outcome.failed_steps, client.deleted) == ([], ["fault-1"])
    texts = [note.text for note in trace.notes]
    assert texts.index("the events of pods arrive now") > texts.index("step 2: 1")


async def test_step_that_needs_what_is_held_back_is_done_after_that(monkeypatch):
    done = []

    async def do(*_):
        done.append(len(client.deleted))
        if not client.deleted:
            raise StepFailed("there is no deployment")

    monkeypatch.setattr("mockube.exploration.plan_run.do_operation", do)
    run, _, _ = run_of_two_steps(type_=RunOfReadyConditions)
    client = recording(run)
    await run._act()
    assert (done, run.outcome.failed_steps) == ([0, 1, 1], [])


class RunOfReadyConditions(PlanRun):
    async def _is_met(self, _expectation, _seconds):
        return True


class RunOfStepped(PlanRun):
    """A run whose pauses advance its clock at once."""

    async def pause(self, seconds):
        self.clock.advance(seconds)
        await yield_to_loop()


async def test_operator_that_never_becomes_quiet_without_an_event_gets_it():
    run, trace, _ = new_run(type_=RunOfStepped, clock=SteppedClock(), settle=1.0)
    arrived = asyncio.Event()

    async def release():
        arrived.set()

    async def write_again_and_again():
        while not arrived.is_set():
            trace.touch()
            await run.pause(0.5)

    run.hold_back(release)
    trace.touch()
    writing = asyncio.create_task(write_again_and_again())
    await run.quiet()
    assert arrived.is_set()
    await writing


async def test_step_is_done_again_when_the_operator_is_up(monkeypatch):
    done = []

    async def do(*_):
        done.append(len(run.operators))
        if len(done) == 1:
            raise StepFailed("the webhook does not answer")

    monkeypatch.setattr("mockube.exploration.plan_run.do_operation", do)
    run = run_of_step(plan_of([Disturbance(action=DOWN)]))
    run.operators.append(FakeOperator())
    await run._act()
    assert (done, run.outcome.failed_steps) == ([0, 1], [])


async def test_crash_of_an_operator_that_is_down_does_nothing():
    run, _, _ = new_run()
    await run.replace_operator(grace=0, text="a crash")
    assert run.operators == []


@pytest.mark.parametrize("is_at_write", [False, True])
async def test_expired_token_is_refused_for_a_while(is_at_write):
    run, _, _ = new_run()
    client = recording(run)
    write = OperatorWrite(verb="create", resource="pods", namespace="", number=0) if is_at_write else None
    disturbance = Disturbance(action=EXPIRE, write=write)
    if not is_at_write:
        await apply(run, disturbance)
        assert run.armed == {"fault-1": disturbance}
    await at_expired_token(run, disturbance, "fault-1")
    await asyncio.gather(*run.pending)
    assert client.created == [{"match": {"user": "operator"}, "refuse": {"status": 401}}]
    assert client.deleted == ["fault-1"]


async def test_eviction_needs_a_pod():
    run, _, _ = new_run()
    await apply(run, Disturbance(action=EVICT, step=0))
    assert not run.outcome.is_applied


@pytest.mark.parametrize(
    ("phases", "evicted"),
    [
        pytest.param({"a": "Succeeded", "b": "Failed"}, [], id="all have ended"),
        pytest.param({"a": "Succeeded", "b": "Running"}, ["b"], id="one runs"),
    ],
)
async def test_pod_that_has_ended_is_not_evicted(phases, evicted):
    run, trace, _ = new_run()
    created = []

    async def create(_resource, tree, **_):
        created.append(tree["metadata"]["name"])

    run.client.create = create
    for name, phase in phases.items():
        identity = ("Pod", "default", name)
        trace.changes.append(replace(change_of("pods", 1), identity=identity))
        trace.objects[identity] = {"status": {"phase": phase}}
    await apply(run, Disturbance(action=EVICT, step=0))
    assert (created, run.outcome.is_applied) == (evicted, bool(evicted))


async def test_end_has_the_values_of_secrets_that_were_written_until_then():
    run, trace, _ = new_run(act=[], expect=[])
    about = {"apiVersion": "v1", "kind": "Secret", "name": "a", "namespace": "default"}
    tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}}
    patch = [{"op": "replace", "path": "", "value": tree}]
    trace.add_change({"spec": {"revision": 1, "type": "ADDED", "object": about, "patch": patch}})
    values = iter(["b25l", "dHdv"])
    run.requests = SimpleNamespace(list=listing(lambda: [{**tree, "data": {"k": next(values)}}]))
    seen = []

    def is_at_end(outcome):
        seen.append(outcome.trace.objects["Secret", "default", "a"]["data"])
        return True

    await run._end(is_at_end, ends_now)
    assert len(seen) == 1
    assert trace.objects["Secret", "default", "a"]["data"] != seen[0]  # the newest value, as a digest
    assert "dHdv" not in str(trace.objects)


@pytest.mark.parametrize(
    ("right_after", "longer", "waited", "asked"),
    [
        pytest.param(0, 35, (0, 1), 0, id="as expected"),
        pytest.param(5, 35, (3, 5), 1, id="later"),
        pytest.param(inf, 35, (35, 37), 1, id="never"),
        pytest.param(inf, 0, (0, 0), 1, id="it ends"),
    ],
)
async def test_run_goes_on_if_its_end_is_not_as_expected(right_after, longer, waited, asked):
    clock = SteppedClock()
    run, _, _ = new_run(type_=RunOfStepped, clock=clock, act=[], expect=[], settle=1.0)
    run.operators = [FakeOperator(None)]
    began, outcomes = clock.monotonic(), []

    async def goes_on(outcome):
        outcomes.append(outcome.waited)
        return longer

    await run._end(lambda _: clock.monotonic() - began >= right_after, goes_on)
    assert waited[0] <= run.outcome.waited <= waited[1]
    assert len(outcomes) == asked


@pytest.mark.parametrize(
    ("is_late", "announced", "waited"),
    [
        pytest.param(True, 60, (65, 75), id="in a minute"),
        pytest.param(True, 600, (35, 37), id="too late"),
        pytest.param(True, 0, (35, 37), id="it says nothing"),
        pytest.param(False, 60, (35, 37), id="a run of a plan"),
    ],
)
async def test_late_run_waits_until_the_operator_tries_again(is_late, announced, waited):
    clock = SteppedClock()
    run, _, _ = new_run(type_=RunOfStepped, clock=clock, act=[], expect=[], settle=1.0)
    run.limits = replace(run.limits, patience=35.0, is_late=is_late)
    run.operators = [FakeOperator(None)]
    if announced:
        run.operators[0].log.write(f"it fails and will try again in {announced} seconds\n".encode())
    await run._end(lambda _: False, ends_now)
    assert waited[0] <= run.outcome.waited <= waited[1]


async def test_run_with_a_failed_step_does_not_wait_for_the_next_try_again():
    run, _, _ = new_run(type_=RunOfStepped, clock=SteppedClock(), act=[], expect=[], settle=1.0)
    run.limits = replace(run.limits, patience=35.0, is_late=True)
    run.operators = [FakeOperator(None)]
    run.operators[0].log.write(b"it will try again in 60 seconds\n")
    run.outcome.failed_steps = ["step 1: waited in vain"]
    await run._end(lambda _: False, ends_now)
    assert 35 <= run.outcome.waited <= 37


@pytest.mark.parametrize(("is_late", "is_met"), [(True, True), (False, False)])
async def test_step_waits_in_a_late_run_until_the_operator_tries_again(is_late, is_met):
    clock = SteppedClock()
    run, _, _ = new_run(plan_of([RESTARTED]), type_=RunOfStepped, clock=clock, settle=1.0)
    run.limits = replace(run.limits, is_late=is_late, max_seconds=600.0)
    run.deadline = clock.monotonic() + 600
    run.operators = [FakeOperator(None)]
    run.operators[0].log.write(b"it will try again in 60 seconds\n")
    began, waits = clock.monotonic(), []

    async def wait(_, seconds):
        waits.append(seconds)
        clock.advance(seconds)
        return clock.monotonic() - began >= 61

    run._is_met = wait
    assert await run._wait("configmap/a gone", 30.0) == is_met
    assert waits == [30.0, 40.0][: 1 + is_late]


def listing(objects):
    async def listed(*_):
        return objects()

    return listed


@pytest.mark.parametrize("action", ["hold events", "drop events", "late events"])
async def test_changes_that_a_plan_hides_are_hidden_until_their_release(action):
    run, trace, _ = new_run()
    await ACTIONS[action](run, Disturbance(action=action, step=0, resource="pods"))
    (hidden,) = trace.hidden.values()
    assert (hidden.resource, hidden.revision, hidden.ended) == ("pods", 1, inf)
    await run.release()
    assert hidden.ended < inf


class SlowToEnd(FakeOperator):
    """An operator that ignores SIGTERM: it ends only when it is killed."""

    def __init__(self):
        super().__init__()
        self.is_stopped, self._killed = threading.Event(), threading.Event()

    def stop(self, grace):
        self.is_stopped.set()
        assert self._killed.wait(60)
        return super().stop(grace)

    def kill(self):
        self._killed.set()


async def test_operator_that_ignores_sigterm_is_killed_when_its_run_is_cancelled():
    run, _, _ = new_run()
    operator = SlowToEnd()
    run.operators.append(operator)
    replacing = asyncio.create_task(run.replace_operator(grace=60, text="a restart"))
    await asyncio.to_thread(operator.is_stopped.wait, 60)
    replacing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await replacing
    run.kill_all()  # as a run does at its end
    assert await asyncio.to_thread(operator._killed.wait, 0)


async def test_pods_of_a_deleted_node_are_deleted_when_the_run_is_quiet():
    run, _, _ = new_run()
    written = []
    nodes = [{"metadata": {"name": name}} for name in ("node-1", "node-2")]
    field = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    of_node = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    mirror = {"annotations": {"kubernetes.io/config.mirror": "5"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "controller": True}
    pods = [
        {
            "metadata": {"name": f"{phase}-on-{node}", "uid": uid, "ownerReferences": owners, **metadata},
            "spec": {"nodeName": node, **spec},
            "status": {"phase": phase},
        }
        for node, phase, uid, owners, spec, metadata in (
            ("node-1", "Running", "1", [owner], {}, {}),
            ("node-2", "Running", "2", [owner], {}, {}),
            ("node-2", "Succeeded", "3", [owner], {}, {}),
            ("node-2", "Pending", "of a DaemonSet", [owner], {"affinity": of_node}, {}),
            ("node-2", "Running", "with a claim", [owner], {"volumes": [{"persistentVolumeClaim": {}}]}, {}),
            ("node-2", "Running", "static", [owner], {}, mirror),
            ("node-2", "Failed", "without an owner", [], {}, {}),
            ("node-2", "Unknown", "of the operator", [owner], {}, {}),
        )
    ]

    async def listed(kind, *_):
        return {"nodes": nodes, "pods": pods}[kind]

    async def delete_node(kind, name, *_, **__):
        written.append((f"delete {kind}", name))

    async def patch(_kind, key, body, **options):
        written.append((f"patch {options['subresource']}", key.name))
        assert body["status"]["conditions"][0]["reason"] == "DeletionByPodGC"

    async def delete(_kind, key, **options):
        written.append((f"delete in {options['grace_period_seconds']} s", key.name))

    run.setting.identity.pods = [SimpleNamespace(pod=pods[-1])]
    run.requests = SimpleNamespace(list=listed, delete=delete_node)
    run.client.patch, run.client.delete = patch, delete
    await apply(run, Disturbance(action=NODE, step=0))
    assert written == [("delete node", "node-2")]
    await run.release_all()
    assert written[1:] == [
        ("patch status", "Running-on-node-2"),
        ("delete in 0 s", "Running-on-node-2"),
        ("delete in 0 s", "Succeeded-on-node-2"),
    ]


@pytest.mark.parametrize(
    ("enough", "asked", "is_cut_short"),
    [pytest.param(2, [1, 2], True, id="enough"), pytest.param(9, [1, 2], False, id="never enough")],
)
async def test_run_ends_when_the_operator_has_deleted_enough(enough, asked, is_cut_short, monkeypatch):
    run, trace, _ = new_run()
    numbers = []

    def is_enough(outcome):
        numbers.append(outcome.trace.deletions)
        return outcome.trace.deletions >= enough

    async def act():
        for number in (1, 2):
            trace.deletions = number
            await yield_to_loop(20)
        if enough == 2:
            await asyncio.Event().wait()  # until it is cancelled

    async def end(*_):
        await yield_to_loop()

    monkeypatch.setattr(run, "_act", act)
    monkeypatch.setattr(run, "_end", end)
    outcome = RunOutcome(plan=run.plan, trace=trace)
    run.outcome = outcome
    await run_until(run._shows_enough(is_enough), run._act_to_the_end(lambda _: True, ends_now))
    assert (numbers, outcome.is_cut_short) == (asked, is_cut_short)
