"""The status of one container: what its process, its hook, its probes and its last run make of it."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from mockube.apimachinery.timestamps import format_time
from mockube.container_runtime.behavior import KILLED, RunBehavior
from mockube.container_runtime.pod_script import NEVER, Script
from mockube.container_runtime.state import NEVER_RAN, NEVER_SIMULATED, ContainerState, Exit
from mockube.kubelet.pod_lifecycle import container as lifecycle
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.pod_lifecycle.container_status import Container, Role
from mockube.kubelet.pod_lifecycle.image_pulls import EnsuredImage
from mockube.kubelet.pod_lifecycle.observations import HookResult, ObservedRun
from mockube.kubelet.step_effects import EmitEvent, RunHook, StartContainer, StopContainer
from tests.support.controllers.pods import START, container, pod

IMAGE = "nginx:1.25"
FAILING_HOOK = {"lifecycle": {"postStart": {"tcpSocket": {"port": 1}}}}
HOOK = {"lifecycle": {"postStart": {"exec": {"command": ["curl", "x"]}}}}
PROBE = {"readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 60}}
SERVICE = RunBehavior(seconds=None)


def at(seconds):
    return START + timedelta(seconds=seconds)


def subject(
    *, process=None, role=Role.MAIN, policy="Always", program=SERVICE, script=None, context=None, **fields
):
    spec = container(image=fields.pop("image", IMAGE), **fields)
    tree = pod(spec)
    return Container(
        spec=spec,
        pod=tree,
        role=role,
        restart_policy=policy,
        program=program,
        script=script or Script(),
        has_ids=False,
        process=process,
        context=context or ContainerContext(),
    )


def status_of(state, *, restarts=0, last=None, **fields):
    return {
        "name": "c",
        "image": IMAGE,
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": restarts,
        "lastState": {"terminated": last} if last else {},
        "state": state,
        **fields,
    }


def running(**fields):
    return status_of({"running": {"startedAt": format_time(START)}}, **fields)


def end(code=0, reason="Error", ran=0):
    return {
        "exitCode": code,
        "reason": reason,
        "startedAt": format_time(START),
        "finishedAt": format_time(at(ran)),
    }


def ended(code=0, *, reason="Error", ran=0, **fields):
    return status_of({"terminated": end(code, reason, ran)}, **fields)


def waiting(reason, **fields):
    return status_of({"waiting": {"reason": reason}}, **fields)


def word(status):
    ((name, state),) = status["state"].items()
    return {"running": "running", "terminated": state.get("exitCode"), "waiting": state.get("reason")}[name]


# --- ends


@pytest.mark.parametrize(
    ("policy", "status", "is_over", "has_succeeded"),
    [
        ("Never", running(), False, False),
        ("Never", ended(0), True, True),
        ("Never", ended(1), True, False),
        ("OnFailure", ended(0), True, True),
        ("OnFailure", ended(1), False, False),
        ("Always", ended(0), False, False),
        ("Never", waiting("ContainerCreating"), False, False),
    ],
)
def test_container_is_over_by_its_policy(policy, status, is_over, has_succeeded):
    found = subject(policy=policy)
    assert lifecycle.is_over(found, status) is is_over
    assert lifecycle.has_succeeded(found, status) is has_succeeded


@pytest.mark.parametrize(
    ("role", "status", "has_continued", "is_initialized"),
    [
        (Role.INIT, running(), False, False),
        (Role.INIT, ended(0), False, True),
        (Role.INIT, ended(1), False, False),
        (Role.SIDECAR, running(started=True), False, True),
        (Role.SIDECAR, running(started=False), False, False),
        (Role.SIDECAR, running(started=False), True, False),
        (Role.SIDECAR, ended(1), True, True),
        (Role.SIDECAR, ended(1), False, False),
        (Role.SIDECAR, waiting("ContainerCreating", started=True), True, False),
    ],
)
def test_next_container_may_run(role, status, has_continued, is_initialized):
    found = subject(role=role, policy="Never")
    assert bool(lifecycle.is_initialized(found, status, has_continued=has_continued)) is is_initialized


@pytest.mark.parametrize(
    ("status", "never_ran"),
    [
        (running(), False),
        (ended(1), False),
        (waiting("CrashLoopBackOff", last=end(1)), False),
        (waiting("ErrImagePull"), True),
    ],
)
def test_container_that_never_ran(status, never_ran):
    assert lifecycle.never_ran(status) is never_ran


# --- a run in real time

STARTED = ContainerState(restarts=0, started=START, passed_startup=True, is_ready=True)
LIVE = replace(STARTED, is_simulated=True, passed_startup=False, is_ready=False)
STOP, FIRST, NEXT = (StopContainer("c"),), (StartContainer("c", 0),), (StartContainer("c", 1),)
READY = running(ready=True, started=True)


@pytest.mark.parametrize(
    ("process", "status", "fields", "expected"),
    [
        (NEVER_RAN, None, {}, ("ContainerCreating", False, False, FIRST)),
        (ContainerState(restarts=0), None, {}, ("ContainerCreating", False, False, ())),
        (ContainerState(restarts=3), None, {}, ("ContainerCreating", False, False, ())),
        (
            ContainerState(restarts=0, waiting_reason="RunContainerError", waiting_message="no"),
            None,
            {},
            ("RunContainerError", False, False, ()),
        ),
        (STARTED, None, {}, ("running", True, True, ())),
        (replace(STARTED, is_ready=False), None, {}, ("running", False, True, ())),
        (replace(STARTED, passed_startup=False), None, {}, ("running", True, False, ())),
        (STARTED, None, {"role": Role.INIT}, ("running", False, True, ())),
        (STARTED, running(), {}, ("running", True, True, ())),
        (STARTED, running(), {"role": Role.INIT}, ("running", False, True, ())),
        (replace(STARTED, is_ready=False), READY, {}, ("running", False, True, ())),
        (STARTED, READY, {"image": "nginx:1.26"}, ("running", True, True, STOP)),
        (replace(STARTED, is_stopping=True), READY, {"image": "nginx:1.26"}, ("running", True, True, ())),
        (replace(STARTED, exit=Exit(code=3, at=at(9))), READY, {"policy": "Never"}, (3, False, False, ())),
        (replace(STARTED, exit=Exit(code=3, at=START)), READY, {}, (3, False, False, NEXT)),
        (NEVER_RAN, READY, {"policy": "Never"}, (KILLED, False, False, ())),
        (LIVE, None, {}, ("running", True, True, ())),
        (LIVE, running(), {}, ("running", True, True, ())),
        (LIVE, running(), {"role": Role.EPHEMERAL}, ("running", False, True, ())),
        (replace(LIVE, waiting_reason="NotSimulated"), READY, {}, ("running", False, True, ())),
        (LIVE, READY, FAILING_HOOK, ("running", True, True, STOP)),
        (replace(LIVE, is_stopping=True), READY, FAILING_HOOK, ("running", True, True, ())),
        (LIVE, running(), PROBE, ("running", False, True, ())),
        (replace(LIVE, waiting_reason="NotSimulated"), running(), PROBE, ("running", False, True, ())),
    ],
)
def test_status_is_that_of_the_process(process, status, fields, expected):
    update = lifecycle.advance(subject(process=process, **fields), status, at(10))
    found = update.status
    assert (word(found), found["ready"], found["started"], update.actions) == expected


@pytest.mark.parametrize(
    ("process", "status", "fields"),
    [
        (STARTED, READY, {}),
        (LIVE, READY, {}),
        (replace(STARTED, exit=Exit(code=3, at=START)), ended(3), {"policy": "Never"}),
        (
            ContainerState(restarts=0, waiting_reason="RunContainerError"),
            waiting("RunContainerError"),
            {},
        ),
    ],
)
def test_status_that_is_right_is_not_written_again(process, status, fields):
    assert lifecycle.advance(subject(process=process, **fields), status, at(10)).status is status


def test_lost_process_ends_now():
    terminated = lifecycle.end_process(subject(), READY, at(7))["state"]["terminated"]
    assert (terminated["finishedAt"], terminated["reason"]) == (format_time(at(7)), "ContainerStatusUnknown")


def test_exit_of_a_process_has_its_time_reason_and_message():
    process = replace(STARTED, exit=Exit(code=137, at=at(3), reason="OOMKilled", message="no memory"))
    terminated = lifecycle.end_process(subject(process=process), READY, at(7))["state"]["terminated"]
    assert terminated == {**end(137, "OOMKilled", 3), "message": "no memory"}


def test_process_that_waits_again_keeps_its_last_run():
    process = ContainerState(restarts=1, waiting_reason="RunContainerError", waiting_message="no")
    found = lifecycle.advance(subject(process=process), ended(1, restarts=0), at(10)).status
    assert found["state"] == {"waiting": {"message": "no", "reason": "RunContainerError"}}
    assert found["lastState"] == {"terminated": end(1)}


@pytest.mark.parametrize(
    ("process", "number"),
    [
        (None, 1),
        (ContainerState(restarts=0), 1),
        (ContainerState(restarts=1), 1),
        (ContainerState(restarts=4), 4),
        (ContainerState(restarts=4, exit=Exit(code=1, at=at(5))), 5),
        (ContainerState(restarts=4, exit=Exit(code=1, at=at(10))), 4),
        (ContainerState(restarts=4, exit=Exit(code=1, at=at(15))), 4),
    ],
)
def test_number_of_the_next_run_is_of_no_other_run(process, number):
    assert lifecycle._next_run(ended(1), process, at(10)) == number


# --- the next run


@pytest.mark.parametrize(
    ("status", "fields", "seconds", "expected"),
    [
        (ended(1), {}, 0, ("running", 1, None)),
        (ended(1, restarts=1), {}, 9, ("CrashLoopBackOff", 1, 10)),
        (ended(1, restarts=1), {}, 10, ("running", 2, None)),
        (ended(1, restarts=1, ran=600), {}, 600, ("running", 2, None)),
        (ended(1, restarts=1), {"image": "nginx:1.26"}, 0, ("running", 2, None)),
        (waiting("CrashLoopBackOff", last=end(1), restarts=2), {}, 19, ("CrashLoopBackOff", 2, 20)),
        (waiting("CrashLoopBackOff", last=end(1), restarts=2), {}, 20, ("running", 3, None)),
        (
            ended(128, reason="StartError", restarts=2),
            {},
            0,
            ("RunContainerError", 2, 10),
        ),
        (
            ended(128, reason="StartError", ran=600, restarts=1),
            {},
            600,
            ("RunContainerError", 1, 610),
        ),
        (
            waiting("RunContainerError", last=end(128, "StartError"), restarts=3),
            {},
            9,
            ("RunContainerError", 3, 10),
        ),
        (
            waiting("RunContainerError", last=end(128, "StartError"), restarts=3),
            {},
            10,
            ("CrashLoopBackOff", 3, 40),
        ),
        (ended(1), {"policy": "Never"}, 600, (1, 0, None)),
        (ended(0), {"policy": "OnFailure"}, 600, (0, 0, None)),
        (ended(1), {"policy": "OnFailure"}, 600, ("running", 1, None)),
    ],
)
def test_next_run_waits_for_the_back_off(status, fields, seconds, expected):
    update = lifecycle.advance(subject(**fields), status, at(seconds))
    due = update.due and (update.due - START).total_seconds()
    assert (word(update.status), update.status["restartCount"], due) == expected


@pytest.mark.parametrize(
    ("process", "expected"),
    [
        (replace(STARTED, restarts=4), ("running", 4)),
        (replace(STARTED, restarts=1, exit=Exit(code=1, at=START)), ("CrashLoopBackOff", 1)),
    ],
    ids=["it goes on", "it has ended"],
)
def test_run_that_goes_on_needs_no_back_off(process, expected):
    update = lifecycle.advance(subject(process=process), ended(1, restarts=1), at(5))
    assert (word(update.status), update.status["restartCount"]) == expected


def test_back_off_is_reported_once():
    first = lifecycle.advance(subject(), ended(1, restarts=1), at(0))
    assert [event.reason for event in first.events] == ["BackOff"]
    message = first.status["state"]["waiting"]["message"]
    assert message == "back-off 10s restarting failed container=c pod=p_ns(uid-1)"
    failed = lifecycle.advance(subject(), ended(128, reason="StartError", restarts=3), at(0))
    assert [event.reason for event in failed.events] == ["BackOff"]
    assert lifecycle.advance(subject(), failed.status, at(10)).events == ()


# --- the run of a simulated container


@pytest.mark.parametrize(
    ("fields", "seconds", "expected"),
    [
        ({}, 5, ("running", True, None)),
        ({"script": Script(ready_after=9)}, 5, ("running", False, 9)),
        ({"script": Script(ready_after=9)}, 9, ("running", True, None)),
        ({"script": Script(ready_after=NEVER)}, 5, ("running", False, None)),
        ({"script": Script(ready_after=9), "role": Role.INIT}, 5, ("running", False, None)),
        ({"script": Script(ready_after=9), "role": Role.EPHEMERAL}, 9, ("running", False, None)),
        ({"program": RunBehavior(seconds=20)}, 5, ("running", True, 20)),
        ({"program": RunBehavior(seconds=20), "script": Script(ready_after=9)}, 5, ("running", False, 9)),
        ({"program": RunBehavior(seconds=7), "script": Script(ready_after=9)}, 5, ("running", False, 7)),
        ({"program": RunBehavior(seconds=7, exit_code=2), "policy": "Never"}, 7, (2, False, None)),
        (PROBE, 5, ("running", False, 61)),
        (PROBE, 61, ("running", True, None)),
        ({**PROBE, "role": Role.INIT}, 61, ("running", False, None)),
        ({**PROBE, "program": RunBehavior(seconds=20)}, 5, ("running", False, 20)),
        ({**FAILING_HOOK, "policy": "Never"}, 5, (KILLED, False, None)),
    ],
)
def test_run_becomes_ready_and_ends(fields, seconds, expected):
    found = subject(**fields)
    begin = lifecycle.advance(found, None, START).status
    update = lifecycle.advance(found, begin, at(seconds))
    due = update.due and (update.due - START).total_seconds()
    assert (word(update.status), update.status["ready"], due) == expected


def test_program_of_each_run_may_be_another():
    def program_of_run(*, restarts, started):
        return RunBehavior(seconds=5, exit_code=3) if restarts == 1 else None

    found = replace(subject(policy="Never"), program_of_run=program_of_run)
    assert word(lifecycle.advance(found, running(restarts=0), at(10)).status) == "running"
    assert word(lifecycle.advance(found, running(restarts=1), at(10)).status) == 3


LIVENESS = {"livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 5, "failureThreshold": 1}}
SLOW = RunBehavior(seconds=None, stop_seconds=20, stop_code=5)


@pytest.mark.parametrize(
    ("fields", "spec", "seconds", "expected"),
    [
        ({}, {}, 9, ("running", 10)),
        ({}, {}, 10, (0, None)),
        ({"program": SLOW}, {}, 29, ("running", 30)),
        ({"program": SLOW}, {}, 30, (5, None)),
        ({"program": SLOW}, {"terminationGracePeriodSeconds": 7}, 17, (KILLED, None)),
        ({"program": SLOW, "grace": 4}, {"terminationGracePeriodSeconds": 7}, 14, (KILLED, None)),
        ({"program": SLOW, "grace": 0}, {}, 10, (KILLED, None)),
    ],
)
def test_unhealthy_container_is_killed(fields, spec, seconds, expected):
    fields = {"policy": "Never", **fields}
    probe = dict(LIVENESS["livenessProbe"])
    if (grace := fields.pop("grace", None)) is not None:
        probe["terminationGracePeriodSeconds"] = grace
    found = subject(script=Script(fail_liveness_after=8), livenessProbe=probe, **fields)
    found = replace(found, pod={**found.pod, "spec": {**found.pod["spec"], **spec}})
    update = lifecycle.advance(found, READY, at(seconds))
    due = update.due and (update.due - START).total_seconds()
    assert (word(update.status), due) == expected
    reasons = [event.reason for event in update.events]
    assert reasons == ([] if seconds < 10 else ["Unhealthy", "Killing"])


def test_container_that_ceases_to_be_ready_is_reported():
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 5, "failureThreshold": 1}
    found = subject(script=Script(fail_readiness_after=8), readinessProbe=probe)
    update = lifecycle.advance(found, READY, at(10))
    assert (update.status["ready"], [event.reason for event in update.events]) == (False, ["Unhealthy"])
    assert lifecycle.advance(found, update.status, at(12)).events == ()


def test_changed_image_restarts_whatever_the_policy():
    update = lifecycle.advance(subject(image="nginx:1.26", policy="Never"), READY, at(9))
    assert (word(update.status), update.status["restartCount"]) == ("running", 1)
    assert update.status["lastState"]["terminated"]["finishedAt"] == format_time(at(9))
    assert update.events[0].reason == "Killing"


def test_resize_restarts_at_once():
    found = lifecycle.restart_container(subject(), READY, at(9))
    assert (word(found), found["restartCount"]) == ("running", 1)
    assert found["state"]["running"]["startedAt"] == format_time(at(9))
    assert found["lastState"]["terminated"]["finishedAt"] == format_time(at(9))


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [({}, []), ({"script": Script(fail_pre_stop=True)}, ["FailedPreStopHook"])],
)
def test_failed_hook_of_a_stop_is_reported(fields, reasons):
    found = subject(lifecycle={"preStop": {"sleep": {"seconds": 1}}}, **fields)
    assert [event.reason for event in lifecycle.pre_stop_failure(found, READY, at(9))] == reasons


# --- the start


class Images:
    """The images of a pod, of which one may fail."""

    def __init__(self, image=None, volumes=None):
        present = EnsuredImage(events=())
        self.image, self.volumes, self.kept = image or present, volumes or present, []

    def ensure(self, _spec, _restarts):
        return self.image

    def ensure_volumes(self, _spec):
        return self.volumes

    def hold(self, _spec, restarts, _image):
        self.kept.append(restarts)


FAILED = EnsuredImage(events=(), reason="ErrImagePull", message="not found", was_tried=True, retry_at=at(20))
LATER = replace(FAILED, was_tried=False)


@pytest.mark.parametrize(
    ("images", "status", "expected"),
    [
        (Images(FAILED), None, ("ErrImagePull", "nginx:1.26")),
        (Images(volumes=FAILED), None, ("ErrImagePull", "nginx:1.26")),
        (Images(LATER), waiting("ImagePullBackOff"), ("ImagePullBackOff", IMAGE)),
        (Images(LATER), waiting("ContainerCreating"), ("ErrImagePull", "nginx:1.26")),
        (Images(FAILED), ended(1), ("ErrImagePull", IMAGE)),
    ],
)
def test_container_without_its_image_waits(images, status, expected):
    found = subject(context=ContainerContext(images=images), image="nginx:1.26")
    update = lifecycle.advance(found, status, at(9))
    assert (word(update.status), update.status["image"]) == expected
    assert (update.lacks_image, update.due) == (True, at(20))


FAILURE = EmitEvent("Warning", "Failed", "not found")


@pytest.mark.parametrize("status", [None, ended(1)])
def test_failed_pull_is_reported_once(status):
    images = Images(replace(FAILED, events=(FAILURE,)))
    update = lifecycle.advance(subject(context=ContainerContext(images=images)), status, at(9))
    assert [event.reason for event in update.events] == ["Failed"]


class NoProfiles:
    def seccomp_problem(self, path):
        return f"open {path}: no such file or directory"


@pytest.mark.parametrize("status", [None, ended(1)])
def test_container_that_cannot_be_created_is_reported_once(status):
    profile = {"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}
    found = subject(securityContext=profile, context=ContainerContext(images=Images(), profiles=NoProfiles()))
    update = lifecycle.advance(found, status, at(9))
    assert (word(update.status), update.is_blocked, update.due) == ("CreateContainerError", True, at(19))
    assert [event.reason for event in update.events] == ["Failed"]
    again = replace(found, context=replace(found.context, retry_at=at(19)))
    update = lifecycle.advance(again, update.status, at(12))
    assert (update.is_blocked, update.due, update.events) == (True, at(19), ())
    update = lifecycle.advance(again, update.status, at(19))
    assert (update.is_blocked, update.due, len(update.events)) == (True, at(29), 1)


def test_image_whose_name_is_invalid_is_not_pulled():
    images = Images(replace(FAILED, events=(FAILURE,)))
    found = subject(image="no image", context=ContainerContext(images=images))
    update = lifecycle.advance(found, None, at(9))
    assert (word(update.status), update.lacks_image) == ("InvalidImageName", False)
    assert [event.reason for event in update.events] == ["InspectFailed", "Failed"]


def test_pull_that_fails_again_changes_nothing():
    found = subject(context=ContainerContext(images=Images(FAILED)))
    first = lifecycle.advance(found, None, at(9)).status
    assert lifecycle.advance(found, first, at(9)).status is first


def test_process_that_runs_needs_no_image():
    found = subject(process=STARTED, context=ContainerContext(images=Images(FAILED)))
    assert word(lifecycle.advance(found, None, at(9)).status) == "running"


@pytest.mark.parametrize(
    ("hook", "seconds", "expected"),
    [
        (
            HookResult(is_pending=True, seconds=NEVER),
            5,
            ("ContainerCreating", None, (RunHook("c", "postStart", 0),)),
        ),
        (HookResult(seconds=NEVER), 5, ("ContainerCreating", None, ())),
        (HookResult(began=at(2), seconds=7), 5, ("ContainerCreating", 9, ())),
        (HookResult(began=at(2), seconds=7), 9, ("running", None, ())),
    ],
)
def test_container_runs_when_its_hook_has_ended(hook, seconds, expected):
    images = Images()
    observed = {"c": ObservedRun(restarts=0, hooks={"postStart": hook})}
    found = subject(context=ContainerContext(images=images, observed=observed), **HOOK)
    update = lifecycle.advance(found, None, at(seconds))
    due = update.due and (update.due - START).total_seconds()
    assert (word(update.status), due, update.actions) == expected
    assert images.kept == ([] if expected[0] == "running" else [0])
    if expected[0] == "running":
        assert update.status["state"]["running"]["startedAt"] == format_time(at(2))
    live = replace(found, process=LIVE)
    assert word(lifecycle.advance(live, None, at(seconds)).status) == expected[0]


def test_live_container_that_has_ended_does_not_wait_for_its_hook():
    observed = {"c": ObservedRun(restarts=0, hooks={"postStart": HookResult(seconds=NEVER)})}
    process = replace(LIVE, exit=Exit(code=1, at=at(3)))
    found = subject(process=process, policy="Never", context=ContainerContext(observed=observed), **HOOK)
    assert word(lifecycle.advance(found, None, at(9)).status) == 1


@pytest.mark.parametrize("process", [NEVER_RAN, NEVER_SIMULATED, ContainerState(restarts=0)])
def test_image_is_kept_until_the_process_has_started(process):
    images = Images()
    lifecycle.advance(subject(process=process, context=ContainerContext(images=images)), None, START)
    assert images.kept == [0]
