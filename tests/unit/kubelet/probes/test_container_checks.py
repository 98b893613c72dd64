"""The hooks and probes of a process over time: when they run, what their results change, and what is recorded."""

import asyncio

import pytest
from msgspec.structs import replace

from mockube.component_base.clock import SteppedClock
from mockube.component_base.supervision import cancel_and_wait
from mockube.container_runtime.records import Records
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.pod_lifecycle.probing import Probe
from mockube.kubelet.probes.container_checks import ContainerChecks
from mockube.kubelet.probes.totals import TotalsByPod
from tests.support.event_loop import yield_to_loop

TURNS = 20


class Run:
    """A run of a container, whose commands have the results that a test gives: `+` succeeds, `-` fails, `?` lasts for ever."""

    def __init__(self, clock, results, **container):
        self.clock, self.results, self.lines = clock, {name: [*each] for name, each in results.items()}, []
        self.container = {"name": "c", **container}
        self.pod = {"metadata": {"name": "web", "uid": "u"}, "spec": {"terminationGracePeriodSeconds": 20}}
        self.state = ContainerState(restarts=0)
        self._began = clock.monotonic()

    def note(self, text):
        self.lines.append(f"{self.clock.monotonic() - self._began:g} {text}")

    def stop(self, grace):
        self.note(f"stop {grace:g}")

    def kill(self):
        self.note("kill")

    def update_state(self, **fields):
        self.state = replace(self.state, **fields)
        self.note(f"started={self.state.passed_startup} ready={self.state.is_ready}")

    def record_event(self, kind, reason, message):
        self.note(f"{kind} {reason} {message}")

    async def execute(self, command):
        (name,) = command
        results = self.results[name]
        result = results.pop(0) if len(results) > 1 else results[0]
        if result == "?":
            await asyncio.get_running_loop().create_future()
        return int(result == "-"), f"{name}{result}"

    def port_of(self, port, host=""):
        raise NotImplementedError(port, host)


def command(name, **fields):
    return {"exec": {"command": [name]}, "periodSeconds": 2, "failureThreshold": 2, **fields}


NAMED_PORT = {"tcpSocket": {"port": "http"}, "periodSeconds": 2}
STARTUP, READINESS, LIVENESS = (command(name) for name in ("startup", "ready", "live"))
BEGINS, IS_READY = "0 started=True ready=False", "0 started=True ready=True"


def unhealthy(seconds, title, output):
    return f"{seconds} Warning Unhealthy {title} probe failed: {output}"


ROWS = {
    "no probe": ({}, {}, [IS_READY]),
    "readiness succeeds at once": (
        {"readinessProbe": READINESS},
        {"ready": "+"},
        [BEGINS, "0 started=True ready=True"],
    ),
    "readiness fails as often as its threshold, and succeeds again": (
        {"readinessProbe": READINESS},
        {"ready": "+--+"},
        [
            BEGINS,
            "0 started=True ready=True",
            unhealthy(2, "Readiness", "ready-"),
            unhealthy(4, "Readiness", "ready-"),
            "4 started=True ready=False",
            "6 started=True ready=True",
        ],
    ),
    "liveness succeeds": ({"livenessProbe": LIVENESS}, {"live": "+"}, [IS_READY]),
    "liveness fails": (
        {"livenessProbe": LIVENESS},
        {"live": "+-"},
        [
            IS_READY,
            unhealthy(4, "Liveness", "live-"),
            unhealthy(6, "Liveness", "live-"),
            "6 Normal Killing Container c failed liveness probe, will be restarted",
            "6 stop 20",
        ],
    ),
    "liveness has a grace period of its own": (
        {"livenessProbe": {**LIVENESS, "failureThreshold": 1, "terminationGracePeriodSeconds": 3}},
        {"live": "-"},
        [
            IS_READY,
            unhealthy(2, "Liveness", "live-"),
            "2 Normal Killing Container c failed liveness probe, will be restarted",
            "2 stop 3",
        ],
    ),
    "startup succeeds, and a container without readiness is ready": (
        {"startupProbe": STARTUP},
        {"startup": "-+"},
        ["0 started=False ready=False", unhealthy(2, "Startup", "startup-"), "4 started=True ready=True"],
    ),
    "startup fails": (
        {"startupProbe": STARTUP},
        {"startup": "-"},
        [
            "0 started=False ready=False",
            unhealthy(2, "Startup", "startup-"),
            unhealthy(4, "Startup", "startup-"),
            "4 Normal Killing Container c failed startup probe, will be restarted",
            "4 stop 20",
        ],
    ),
    "the other probes wait for startup": (
        {
            "startupProbe": STARTUP,
            "readinessProbe": READINESS,
            "livenessProbe": {**LIVENESS, "failureThreshold": 1},
        },
        {"startup": "-+", "ready": "+", "live": "-"},
        [
            "0 started=False ready=False",
            unhealthy(2, "Startup", "startup-"),
            "4 started=True ready=False",
            "4 started=True ready=True",
            unhealthy(6, "Liveness", "live-"),
            "6 Normal Killing Container c failed liveness probe, will be restarted",
            "6 stop 20",
        ],
    ),
    "a probe of an unknown port says nothing of the container": (
        {"livenessProbe": {**NAMED_PORT, "failureThreshold": 1, "periodSeconds": 6}},
        {},
        [
            IS_READY,
            '6 Warning Unhealthy Liveness probe errored and resulted in unknown state: port "http" not found',
        ],
    ),
    "a probe that takes too long": (
        {"readinessProbe": {**READINESS, "timeoutSeconds": 3, "failureThreshold": 1, "periodSeconds": 5}},
        {"ready": "?"},
        [BEGINS, '3 Warning Unhealthy Readiness probe failed: command timed out: "ready" timed out after 3s'],
    ),
    "a hook that succeeds": (
        {"lifecycle": {"postStart": {"exec": {"command": ["hook"]}}}},
        {"hook": "+"},
        [IS_READY],
    ),
    "a hook that fails ends the container": (
        {"lifecycle": {"postStart": {"exec": {"command": ["hook"]}}}, "readinessProbe": READINESS},
        {"hook": "-"},
        [
            "0 Warning FailedPostStartHook PostStartHook failed",
            "0 Normal Killing FailedPostStartHook",
            "0 kill",
        ],
    ),
}


async def passed(clock, seconds):
    for _ in range(seconds):
        await yield_to_loop(TURNS)
        clock.advance(1)
    await yield_to_loop(TURNS)


def checks_of(run, clock, ready=None, totals=None):
    return ContainerChecks(run, clock, ready, totals or TotalsByPod(Records()))


@pytest.mark.parametrize(("container", "results", "lines"), ROWS.values(), ids=ROWS)
async def test_checks(clock, container, results, lines):
    run = Run(clock, results, **container)
    task = asyncio.create_task(checks_of(run, clock).run(run))
    await passed(clock, 7)
    await cancel_and_wait([task])
    assert run.lines == lines


async def test_readiness_of_the_image_counts_only_without_one_of_the_container(clock):
    ready = command("image")
    for own, lines in (({}, [BEGINS, IS_READY]), ({"readinessProbe": READINESS}, [BEGINS])):
        run = Run(clock, {"image": "+", "ready": "-"}, **own)
        task = asyncio.create_task(checks_of(run, clock, ready).run(run))
        await passed(clock, 0)
        await cancel_and_wait([task])
        assert [each for each in run.lines if "Unhealthy" not in each] == lines


async def test_results_are_counted_but_for_those_that_say_nothing(clock):
    totals = TotalsByPod(Records())
    run = Run(clock, {"ready": "+-"}, readinessProbe=READINESS, livenessProbe=NAMED_PORT)
    task = asyncio.create_task(checks_of(run, clock, totals=totals).run(run))
    await passed(clock, 5)
    await cancel_and_wait([task])
    assert {*totals.of("u")} == {("c", Probe.READINESS)}
    counted = totals.of("u")["c", Probe.READINESS]
    assert (counted.successful, counted.failed) == (1, 2)


STARTED = ContainerState(restarts=0, started=SteppedClock().now())
HOOK = {"lifecycle": {"preStop": {"exec": {"command": ["hook"]}}}}
FAILED_HOOK = ["0 Warning FailedPreStopHook PreStopHook failed"]


@pytest.mark.parametrize(
    ("container", "result", "state", "seconds", "outcome"),
    [
        ({}, "+", STARTED, 5, (0, [])),
        (HOOK, "+", STARTED, 5, (2, [])),
        (HOOK, "-", STARTED, 5, (2, FAILED_HOOK)),
        (HOOK, "-", STARTED, 0, (0, [])),
        (HOOK, "-", ContainerState(restarts=0), 5, (0, [])),
        (HOOK, "?", STARTED, 3, (2, ["3 Warning FailedPreStopHook PreStopHook failed"])),
    ],
    ids=["no hook", "succeeds", "fails", "no time", "not started", "takes too long"],
)
async def test_pre_stop_hook(clock, container, result, state, seconds, outcome):
    run = Run(clock, {"hook": result}, **container)
    run.state = state
    task = asyncio.create_task(checks_of(run, clock).run_pre_stop_hook(seconds))
    await passed(clock, 4)
    assert (await task, run.lines) == outcome
