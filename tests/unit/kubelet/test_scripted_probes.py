"""Annotations make probes and hooks of simulated containers fail, whatever their commands."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

GET = {"httpGet": {"port": 80}, "periodSeconds": 10, "failureThreshold": 3}
PROBED = {"readinessProbe": GET, "livenessProbe": GET, "startupProbe": GET}


def simulated_pod(annotations, *, policy="Always", **fields):
    named = {f"mockube.dev/{name}": text for name, text in annotations.items()}
    subject = pod(container("c", **fields), annotations=named, policy=policy)
    return SimulatedPod(subject, context=node_context(details=True))


def now(simulated):
    status = simulated.status["containerStatuses"][0]
    return next(iter(status["state"])), status["started"], status["ready"], status["restartCount"]


def warnings_and_kills(simulated):
    return [
        (one.reason, one.message)
        for one in simulated.events
        if one.type == "Warning" or one.reason == "Killing"
    ]


def test_probes_succeed_at_once_by_default():
    probed = simulated_pod({}, readinessProbe=GET, livenessProbe=GET)
    assert now(probed) == ("running", True, True, 0)
    assert probed.writes == 1
    assert probed.due is None


def test_startup_probe_is_run_after_its_period():
    probed = simulated_pod({}, **PROBED).pass_time(9)
    assert now(probed) == ("running", False, False, 0)
    assert now(probed.pass_time(1)) == ("running", True, True, 0)


@pytest.mark.parametrize(
    ("fields", "changes"),
    [
        ({"readinessProbe": {**GET, "initialDelaySeconds": 5}}, [(11, True, True)]),
        ({"readinessProbe": {**GET, "successThreshold": 3}}, [(20, True, True)]),
        ({"startupProbe": {**GET, "initialDelaySeconds": 7}}, [(10, True, True)]),
        (
            {
                "startupProbe": {**GET, "initialDelaySeconds": 3},
                "readinessProbe": {**GET, "initialDelaySeconds": 5, "successThreshold": 2},
            },
            [(10, True, False), (20, True, True)],
        ),
        (
            {
                "startupProbe": {**GET, "initialDelaySeconds": 9},
                "readinessProbe": {**GET, "initialDelaySeconds": 5},
            },
            [(10, True, True)],
        ),
    ],
)
def test_probes_start_after_initial_delay(fields, changes):
    probed = simulated_pod({}, **fields)
    passed = 0
    for at, started, ready in changes:
        before = now(probed)
        probed.pass_time(at - passed - 1)
        assert now(probed) == before
        probed.pass_time(1)
        passed = at
        assert now(probed) == ("running", started, ready, 0)
    assert probed.due is None
    assert warnings_and_kills(probed) == []


def test_liveness_delay_does_not_delay_readiness():
    assert now(simulated_pod({}, livenessProbe={**GET, "initialDelaySeconds": 60})) == (
        "running",
        True,
        True,
        0,
    )


@pytest.mark.parametrize("annotation", ["startup-after", "fail-readiness-after", "fail-liveness-after"])
def test_annotations_without_probe_have_no_effect(annotation):
    plain = simulated_pod({annotation: "5s"})
    assert now(plain) == ("running", True, True, 0)
    assert plain.due is None


def test_readiness_fails_after_failure_threshold():
    probed = simulated_pod({"fail-readiness-after": "30s"}, readinessProbe=GET)
    probed.pass_time(49)
    assert now(probed) == ("running", True, True, 0)
    probed.pass_time(1)
    assert now(probed) == ("running", True, False, 0)
    assert warnings_and_kills(probed) == [
        ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")
    ]
    assert probed.due is None
    ready = next(one for one in probed.status["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "ContainersNotReady")


def test_always_failing_readiness_is_never_ready():
    probed = simulated_pod({"fail-readiness-after": "0s"}, readinessProbe=GET)
    probed.pass_time(3600)
    assert now(probed) == ("running", True, False, 0)
    assert warnings_and_kills(probed) == [
        ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")
    ]


def test_slow_startup_probe_delays_readiness():
    probed = simulated_pod({"startup-after": "15s"}, **PROBED)
    assert now(probed) == ("running", False, False, 0)
    probed.pass_time(19)
    assert now(probed) == ("running", False, False, 0)
    probed.pass_time(1)
    assert now(probed) == ("running", True, True, 0)


def test_failing_startup_probe_restarts_container_with_backoff():
    probed = simulated_pod({"startup-after": "never"}, startupProbe=GET)
    probed.pass_time(29)
    assert now(probed) == ("running", False, False, 0)
    probed.pass_time(1)
    assert now(probed) == ("running", False, False, 1)
    assert warnings_and_kills(probed)[1:3] == [
        ("Unhealthy", "Startup probe failed: HTTP probe failed with statuscode: 500"),
        ("Killing", "Container c failed startup probe, will be restarted"),
    ]
    probed.pass_time(30)
    assert now(probed) == ("waiting", False, False, 1)
    assert probed.status["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"


@pytest.mark.parametrize(("policy", "state"), [("Always", "running"), ("Never", "terminated")])
def test_failing_liveness_probe_ends_run(policy, state):
    probed = simulated_pod(
        {"fail-liveness-after": "0s"}, policy=policy, livenessProbe={**GET, "initialDelaySeconds": 5}
    )
    probed.pass_time(29)
    assert now(probed) == ("running", True, True, 0)
    probed.pass_time(1)
    assert now(probed)[0] == state
    assert ("Killing", "Container c failed liveness probe, will be restarted") in warnings_and_kills(probed)


def test_started_sidecar_lets_containers_start():
    side = container("side", restartPolicy="Always", startupProbe=GET)
    subject = pod(container(), init=[side], annotations={"mockube.dev/startup-after": "15s"})
    simulated = SimulatedPod(subject, context=node_context(details=True))
    assert simulated.status["phase"] == "Pending"
    simulated.pass_time(20)
    assert simulated.status["phase"] == "Running"


@pytest.mark.parametrize(
    ("annotation", "hook", "event"),
    [
        ("fail-post-start", "postStart", ("FailedPostStartHook", "PostStartHook failed")),
        ("fail-pre-stop", "preStop", ("FailedPreStopHook", "PreStopHook failed")),
    ],
)
def test_failing_hooks_record_events(annotation, hook, event):
    hooked = simulated_pod({annotation: "true"}, lifecycle={hook: {"exec": {"command": ["true"]}}})
    if hook == "preStop":
        hooked.delete()
    assert event in warnings_and_kills(hooked)
    restarts = 0 if hook == "preStop" else 1
    assert hooked.status["containerStatuses"][0]["restartCount"] == restarts
