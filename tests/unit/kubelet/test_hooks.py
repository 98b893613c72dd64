"""The hooks of simulated containers: their commands are interpreted, and take their time."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod


def command(*argv):
    return {"exec": {"command": list(argv)}}


SLEEP = {"sleep": {"seconds": 10}}
UNKNOWN = [command("nginx", "-s", "quit"), {"httpGet": {"port": 80}}, command("test", "-f", "/etc/app/ready")]


def simulated(*containers, details=True, **spec):
    return SimulatedPod(pod(*containers, **spec), context=node_context(details=details))


def hooked(name="c", *argv, **hooks):
    return container(name, *argv, lifecycle=hooks)


def states(simulated_pod):
    return [next(iter(status["state"])) for status in simulated_pod.status["containerStatuses"]]


def reasons(simulated_pod):
    return [event.reason for event in simulated_pod.events]


# --- postStart


@pytest.mark.parametrize("hook", [SLEEP, command("sleep", "10"), command("sh", "-c", "sleep 4; sleep 6")])
@pytest.mark.parametrize("details", [True, False])
def test_container_runs_when_its_post_start_hook_has_ended(hook, details):
    subject = simulated(hooked(postStart=hook), details=details).pass_time(9)
    assert (states(subject), subject.status["phase"]) == (["waiting"], "Pending")
    status = subject.status["containerStatuses"][0]
    assert status["state"] == {"waiting": {"reason": "ContainerCreating"}}
    subject.pass_time(1)
    assert (states(subject), subject.status["phase"]) == (["running"], "Running")
    status = subject.status["containerStatuses"][0]
    assert (status["state"]["running"]["startedAt"], status["ready"]) == ("2030-01-01T00:00:00Z", True)
    assert reasons(subject) == (["Pulled", "Created", "Started"] if details else [])


def test_next_container_starts_after_post_start_hook():
    subject = simulated(hooked("a", postStart=SLEEP), container("b", image="redis"))
    assert states(subject.pass_time(9)) == ["waiting", "waiting"]
    assert states(subject.pass_time(1)) == ["running", "running"]


def test_post_start_hook_begins_after_init_containers():
    init = container("init", "sleep", "20")
    subject = simulated(hooked(postStart=SLEEP), init=[init])
    assert states(subject.pass_time(29)) == ["waiting"]
    assert states(subject.pass_time(1)) == ["running"]


def test_post_start_hook_delays_each_restart():
    subject = simulated(hooked("c", "sh", "-c", "sleep 20; exit 1", postStart=SLEEP))
    assert states(subject.pass_time(20)) == ["terminated"]
    assert states(subject.pass_time(9)) == ["terminated"]
    assert states(subject.pass_time(1)) == ["running"]
    assert subject.status["containerStatuses"][0]["restartCount"] == 1


def test_post_start_hook_without_end_keeps_container_waiting():
    subject = simulated(hooked(postStart=command("sleep", "infinity"))).pass_time(3600)
    assert (states(subject), subject.due) == (["waiting"], None)


@pytest.mark.parametrize(
    "hook",
    [command("false"), command("sh", "-c", "sleep 3; exit 1"), {"httpGet": {"port": "htpp"}}],
)
def test_failing_post_start_hook_kills_container(hook):
    subject = simulated(hooked(postStart=hook), policy="Never").pass_time(10)
    assert states(subject) == ["terminated"]
    end = subject.status["containerStatuses"][0]["state"]["terminated"]
    assert (end["exitCode"], subject.status["phase"]) == (137, "Failed")
    failures = [(event.type, event.reason, event.message) for event in subject.events][-2:]
    assert failures == [
        ("Warning", "FailedPostStartHook", "PostStartHook failed"),
        ("Normal", "Killing", "FailedPostStartHook"),
    ]


def test_failing_post_start_hook_backs_off():
    subject = simulated(hooked(postStart=command("false")))
    status = subject.status["containerStatuses"][0]
    assert (status["state"]["waiting"]["reason"], status["restartCount"]) == ("CrashLoopBackOff", 1)


@pytest.mark.parametrize(
    ("action", "state"),
    [
        pytest.param({"port": 80}, "running", id="a server"),
        pytest.param({"port": 80, "path": "/nope"}, "running", id="any status"),
        pytest.param({"port": 80, "scheme": "HTTPS"}, "running", id="again without TLS"),
        pytest.param({"port": 81}, "waiting", id="a closed port"),
        pytest.param({"port": 80, "host": "localhost"}, "waiting", id="the node"),
        pytest.param({"port": 80, "host": "nope.svc"}, "waiting", id="a name"),
        pytest.param({"port": 80, "host": "192.0.2.1"}, "running", id="another host"),
    ],
)
def test_http_hook_needs_response(action, state):
    subject = simulated(hooked(postStart={"httpGet": action})).pass_time(60)
    assert states(subject) == [state]
    assert ("FailedPostStartHook" in reasons(subject)) is (state == "waiting")


@pytest.mark.parametrize("hook", UNKNOWN)
def test_hooks_with_unknown_result_succeed_at_once(hook):
    subject = simulated(hooked(postStart=hook, preStop=hook))
    assert states(subject) == ["running"]
    assert subject.delete().removed
    assert not {"FailedPostStartHook", "FailedPreStopHook"} & {*reasons(subject)}


# --- preStop


@pytest.mark.parametrize("hook", [SLEEP, command("sleep", "10")])
def test_pod_terminates_when_its_pre_stop_hook_has_ended(hook):
    subject = simulated(hooked(preStop=hook)).delete()
    assert not subject.pass_time(9).removed
    assert subject.pass_time(1).removed
    assert "FailedPreStopHook" not in reasons(subject)


def test_pre_stop_hook_ends_with_grace_period():
    subject = simulated(hooked(preStop=command("sleep", "infinity"))).delete(grace=5)
    assert not subject.pass_time(4).removed
    assert subject.pass_time(1).removed


def test_failing_pre_stop_hook_is_reported():
    subject = simulated(hooked(preStop=command("false"))).delete()
    assert subject.removed
    assert reasons(subject)[-2:] == ["Killing", "FailedPreStopHook"]


def test_annotation_replaces_duration_of_pre_stop_hook():
    subject = simulated(hooked(preStop=SLEEP), annotations={"mockube.dev/terminate-after": "2s"}).delete()
    assert not subject.pass_time(1).removed
    assert subject.pass_time(1).removed


def test_container_that_does_not_run_has_no_pre_stop_hook():
    subject = simulated(hooked("c", "true", preStop=SLEEP), policy="Never")
    assert subject.delete().removed
