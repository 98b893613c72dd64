"""Probes and hooks that run in real time: when each starts and ends, and what is observed of them."""

from datetime import timedelta
from math import inf

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.objects import ObjectsUnavailable
from mockube.container_runtime.port_probe import PortAnswer
from mockube.container_runtime.records import Records
from mockube.kubelet.pod_lifecycle.observations import HOOK_SUCCESS, NOT_OBSERVED, PENDING_HOOK
from mockube.kubelet.pod_lifecycle.probing import Probe
from mockube.kubelet.probes import live_handlers
from mockube.kubelet.probes.live_handlers import LiveHandlers
from mockube.kubelet.probes.totals import TotalsByPod
from mockube.kubelet.step_effects import RunHook, StartContainer
from tests.support.controllers.pods import IP, container, pod
from tests.support.event_loop import yield_to_loop

EXEC = {"exec": {"command": ["x"]}, "periodSeconds": 10, "failureThreshold": 2}
PROBES = {probe.value: EXEC for probe in Probe}
HOOKS = {"postStart": {"exec": {"command": ["x"]}}, "preStop": {"exec": {"command": ["x"]}}}
STARTUP, READINESS, LIVENESS = "startupProbe", "readinessProbe", "livenessProbe"
OK, BAD = CommandResult(exit_code=0), CommandResult(exit_code=1, output="no")


class Runtime:
    """Runs the commands of all probes and hooks. `results` has the next ones of each; the last one is repeated."""

    def __init__(self, *fields, **results):
        self.commands = {field: () if field.endswith("!") else ("run", field) for field in fields}
        self.commands = {field.rstrip("!"): argv for field, argv in self.commands.items()}
        self.results, self.ran, self.answers = results, [], []

    def live_handlers(self, _, container):
        return self.commands if container["name"] == "c" else {}

    async def exec_sync(self, _pod, _name, command, limit, *, restarts, on_unknown):
        field = command[1]
        self.ran.append((field, limit, restarts))
        results = self.results.get(field, [OK])
        result = results.pop(0) if len(results) > 1 else results[0]
        if isinstance(result, Exception):
            raise result
        if isinstance(result, str):
            on_unknown(result)
            return None
        return result

    async def probe_port(self, _pod, name, request, *, restarts):
        self.ran.append((name, request.port, request.path, restarts))
        return self.answers.pop(0)

    @property
    def fields(self):
        return [field for field, *_ in self.ran]


class Observed:
    def __init__(self, runtime, **fields):
        self.clock, self.records, self.runtime = SteppedClock(), Records(), runtime
        self.totals = TotalsByPod(Records())
        self.began = self.clock.now()
        self.fields = fields or {**PROBES, "lifecycle": HOOKS}
        self.changes, self.failures, self.unknown = [], [], []
        self.handlers = LiveHandlers(
            self.records,
            self.clock,
            runtime,
            self.totals,
            on_change=self.changes.append,
            on_failure=lambda _, name, result: self.failures.append((name, result.message)),
            on_unknown_program=lambda _, *about: self.unknown.append(about),
        )

    def pod(self, *, started=None, ready=False, restarts=0, runs=True):
        state = {"running": {"startedAt": format_time(self.began)}} if runs else {"waiting": {}}
        status = {"name": "c", "state": state, "ready": ready, "started": started, "restartCount": restarts}
        tree = pod(container(**self.fields), container("other"))
        return {**tree, "status": {"podIP": IP, "containerStatuses": [status]}}

    async def pass_time(self, seconds=0):
        await yield_to_loop(20)
        for _ in range(seconds):
            self.clock.advance(1)
            await yield_to_loop(10)

    def results(self, tree):
        seen = self.handlers.observations(tree)["c"]
        return {probe.value: [result.is_success for _, result in seen.probes[probe]] for probe in seen.probes}


ALL = (STARTUP, READINESS, LIVENESS)


async def test_startup_probe_runs_until_it_succeeds_and_the_others_after_it():
    subject = Observed(Runtime(*ALL, startupProbe=[BAD, OK]))
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=False))
        await subject.pass_time(35)
        assert subject.runtime.ran == [(STARTUP, 1.0, 0)] * 2
        subject.handlers.follow(subject.pod(started=True))
        await subject.pass_time(10)
        assert {*subject.runtime.fields[2:]} == {READINESS, LIVENESS}
    assert subject.failures == [("c", "Startup probe failed: no")]
    assert subject.results(subject.pod(started=True))[STARTUP] == [None, False, True, None]
    assert [key.name for key in subject.changes[:2]] == ["p", "p"]
    totals = subject.totals.of("uid-1")["c", Probe.STARTUP]
    assert (totals.successful, totals.failed) == (1, 1)


@pytest.mark.parametrize(
    ("field", "is_started", "attempts"), [(STARTUP, False, 2), (READINESS, True, 6), (LIVENESS, True, 2)]
)
async def test_probe_that_restarts_its_container_ends_when_it_has_failed(field, is_started, attempts):
    subject = Observed(Runtime(field, **{field: [BAD]}))
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=is_started))
        subject.handlers.follow(subject.pod(started=is_started))  # which does not start it once more
        await subject.pass_time(60)
    assert len(subject.runtime.ran) in {attempts, attempts + (field == READINESS)}
    assert len(subject.failures) == len(subject.runtime.ran)


async def test_probes_end_when_the_container_does_not_run_and_begin_anew_after_a_restart():
    subject = Observed(Runtime(READINESS))
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=True))
        await subject.pass_time(15)
        count = len(subject.runtime.ran)
        subject.handlers.follow(subject.pod(runs=False))
        await subject.pass_time(30)
        assert len(subject.runtime.ran) == count
        subject.handlers.follow(subject.pod(started=True, restarts=1))
        await subject.pass_time(15)
        assert [restarts for *_, restarts in subject.runtime.ran[count:]] != []
        assert {restarts for *_, restarts in subject.runtime.ran[count:]} == {1}
        subject.records.remove("uid-1")
        count = len(subject.runtime.ran)
        await subject.pass_time(30)
        assert len(subject.runtime.ran) == count


async def test_end_of_the_manager_ends_the_probes():
    subject = Observed(Runtime(READINESS))
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=True))
        await subject.pass_time(1)
    count = len(subject.runtime.ran)
    await subject.pass_time(30)
    assert len(subject.runtime.ran) == count


@pytest.mark.parametrize("error", [ObjectsUnavailable("x"), ValueError("x")])
async def test_attempt_that_cannot_be_made_is_left_out(error, caplog):
    subject = Observed(Runtime(LIVENESS, livenessProbe=[error, OK]))
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=True))
        await subject.pass_time(25)
    assert subject.failures == []
    assert len(subject.runtime.ran) == 2
    assert len(caplog.records) == 1
    caplog.clear()


async def test_late_attempt_is_made_at_a_time_of_the_model():
    subject = Observed(Runtime(LIVENESS), livenessProbe=EXEC)
    subject.began -= timedelta(seconds=95)
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=True))
        await subject.pass_time(0)
        assert len(subject.runtime.ran) == 1  # that of 90 seconds
        await subject.pass_time(4)
        assert len(subject.runtime.ran) == 1
        await subject.pass_time(1)
        assert len(subject.runtime.ran) == 2


@pytest.mark.parametrize(
    ("status", "seeded"),
    [
        ({"ready": True, "started": True}, [STARTUP, READINESS, LIVENESS]),
        ({"started": True}, [STARTUP]),
        ({}, []),
        ({"runs": False}, []),
    ],
)
def test_run_that_began_before_the_observation_has_the_results_of_its_status(status, seeded):
    subject = Observed(Runtime(*ALL, "postStart", "preStop"))
    subject.clock.advance(60)
    seen = subject.handlers.observations(subject.pod(**status))["c"]
    assert [probe.value for probe in seen.probes if seen.probes[probe] != NOT_OBSERVED] == seeded
    assert seen.restarts == (-1 if "runs" in status else 0)
    assert seen.hooks == {
        "postStart": PENDING_HOOK if "runs" in status else HOOK_SUCCESS,
        "preStop": PENDING_HOOK,
    }


def test_container_without_live_handlers_is_not_observed():
    subject = Observed(Runtime())
    assert subject.handlers.observations(subject.pod()) == {}


async def test_container_with_other_commands_than_before_is_observed_anew():
    subject = Observed(Runtime(READINESS))
    async with subject.handlers.running():
        tree = subject.pod(started=True)
        subject.handlers.follow(tree)
        await subject.pass_time(15)
        assert subject.results(tree) == {READINESS: [True, None]}
        subject.runtime.commands = {LIVENESS: ("run", LIVENESS)}
        assert subject.results(tree) == {LIVENESS: [None]}
        count = len(subject.runtime.ran)
        await subject.pass_time(30)
        assert len(subject.runtime.ran) == count


def test_probe_of_a_script_is_not_observed():
    subject = Observed(Runtime(READINESS, LIVENESS))
    tree = subject.pod()
    tree["metadata"]["annotations"]["mockube.dev/fail-readiness-after"] = "5s"
    assert {*subject.results(tree)} == {LIVENESS}


@pytest.mark.parametrize(
    ("results", "is_success", "seconds", "runs"),
    [
        ([OK], True, 0.0, 1),
        ([BAD], False, 0.0, 1),
        (["unknown"], True, 0.0, 1),
        ([ObjectsUnavailable("x"), OK], True, 1.0, 2),
        ([ValueError("x")], False, 0.0, 1),
    ],
)
async def test_hook_runs_once(results, is_success, seconds, runs, caplog):
    subject = Observed(Runtime("postStart", "preStop", postStart=results))
    tree = subject.pod()
    async with subject.handlers.running():
        for _ in range(2):
            actions = (StartContainer("c", 0), RunHook("c", "postStart", 0))
            subject.handlers.apply(tree, actions)
            await subject.pass_time(2)
    assert subject.runtime.ran == [("postStart", inf, 0)] * runs
    result = subject.handlers.observations(tree)["c"].hooks["postStart"]
    assert (result.is_success, result.seconds, result.began) == (is_success, seconds, subject.began)
    assert [key.name for key in subject.changes] == ["p"]
    caplog.clear()


GET = {"httpGet": {"port": "web", "path": "/a"}}
PORTS = [{"name": "web", "containerPort": 8080}]


@pytest.mark.parametrize(
    ("ports", "answers", "sent", "is_success"),
    [
        (PORTS, [PortAnswer(status=500)], [("c", 8080, "/a", 0)], True),
        (PORTS, [PortAnswer(is_open=False)], [("c", 8080, "/a", 0)], False),
        ([], [], [], False),
    ],
)
async def test_request_of_a_hook(ports, answers, sent, is_success):
    subject = Observed(Runtime("preStop!"), lifecycle={"preStop": GET}, ports=ports)
    subject.runtime.answers = answers
    tree = subject.pod()
    async with subject.handlers.running():
        subject.handlers.apply(tree, [RunHook("c", "preStop", 0)])
        await subject.pass_time()
    assert subject.runtime.ran == sent
    assert subject.handlers.observations(tree)["c"].hooks["preStop"].is_success is is_success


@pytest.mark.parametrize(
    ("answers", "paths", "results"),
    [
        ([PortAnswer()], ["/a"], [True, None]),
        ([PortAnswer(status=302, location="/b"), PortAnswer(status=500)], ["/a", "/b"], [False, None]),
        ([PortAnswer(unknown="what it answers")], ["/a"], [True, None]),
    ],
)
async def test_probe_of_a_port_follows_redirects(answers, paths, results):
    subject = Observed(Runtime("readinessProbe!"), readinessProbe={**GET, "periodSeconds": 60}, ports=PORTS)
    subject.runtime.answers = [*answers]
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=True))
        await subject.pass_time(3)
    assert [path for _, __, path, ___ in subject.runtime.ran] == paths
    assert subject.results(subject.pod(started=True)) == {READINESS: results}
    expected = [("c", answers[0].unknown, READINESS)] if answers[0].unknown else []
    assert subject.unknown == expected


async def test_unknown_programs_are_reported_once_and_not_without_end(monkeypatch):
    monkeypatch.setattr(live_handlers, "_MAX_UNKNOWN_PROGRAMS", 2)
    subject = Observed(Runtime(READINESS, LIVENESS, readinessProbe=[*"aabc"], livenessProbe=["a"]))
    async with subject.handlers.running():
        subject.handlers.follow(subject.pod(started=True))
        await subject.pass_time(50)
    assert {*subject.unknown} == {("c", "a", READINESS), ("c", "a", LIVENESS)}
    assert len(subject.unknown) == 2
