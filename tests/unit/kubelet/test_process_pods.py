"""Pods with process containers: process results update the pod, and the pod determines starts and stops."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from mockube.apimachinery.meta import with_metadata
from mockube.apimachinery.timestamps import format_time
from mockube.container_runtime.state import NEVER_RAN, ContainerState, Exit
from mockube.kubelet.pod_lifecycle.containers import grace_seconds
from mockube.kubelet.pod_lifecycle.pod import step
from mockube.kubelet.step_effects import DeleteObject, PatchObject, StartContainer, StopContainer
from tests.support.controllers.pods import START, container, node_context, patched, pod

RUNNING = ContainerState(restarts=0, started=START, passed_startup=True, is_ready=True)


def step_once(subject, *, seconds=0, **processes):
    """Return the pod after one step, and the resulting actions."""
    context = replace(node_context(), processes=processes)
    taken = step(subject, context, START + timedelta(seconds=seconds))
    for effect in taken.effects:
        if isinstance(effect, PatchObject):
            subject = {**subject, "status": patched(subject["status"], effect.body["status"])}
    return subject, taken


def state(subject):
    return subject["status"]["containerStatuses"][0]


def test_process_is_started_and_pod_waits_for_it():
    subject, taken = step_once(pod(), c=NEVER_RAN)
    assert taken.actions == (StartContainer("c", 0),)
    assert state(subject)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    subject, taken = step_once(subject, c=ContainerState(restarts=0))
    assert taken.actions == ()
    subject, taken = step_once(subject, c=replace(RUNNING, is_ready=False))
    assert (state(subject)["started"], state(subject)["ready"]) == (True, False)
    subject, taken = step_once(subject, c=RUNNING)
    assert state(subject)["ready"]


def test_exited_process_is_restarted_by_policy():
    subject, _ = step_once(pod(), c=RUNNING)
    ended = replace(RUNNING, exit=Exit(code=3, at=START))
    again, taken = step_once(subject, c=ended)
    assert taken.actions == (StartContainer("c", 1),)
    assert state(again)["state"]["terminated"]["exitCode"] == 3
    subject, _ = step_once(pod(policy="Never"), c=RUNNING)
    over, taken = step_once(subject, c=ended)
    assert taken.actions == ()
    assert over["status"]["phase"] == "Failed"


def test_lost_process_has_ended_and_is_restarted():
    subject, _ = step_once(pod(), c=RUNNING)
    subject, taken = step_once(subject, seconds=5, c=NEVER_RAN)
    end = state(subject)["state"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (137, "ContainerStatusUnknown")
    assert taken.actions == (StartContainer("c", 1),)


def rewound(seconds):
    """Return a pod whose status is that of its first run, and the state of its fifth run, which began some seconds later."""
    later = replace(RUNNING, restarts=4, started=START + timedelta(seconds=seconds))
    return step_once(pod(), c=RUNNING)[0], later


def test_container_of_rewound_pod_that_has_ended_runs_again():
    subject, later = rewound(seconds=50)
    ended = replace(later, exit=Exit(code=1, at=START + timedelta(seconds=60)))
    subject, taken = step_once(subject, seconds=100, c=ended)
    assert taken.actions == (StartContainer("c", 5),)
    assert state(subject)["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    again = replace(RUNNING, restarts=5, started=START + timedelta(seconds=100))
    subject, taken = step_once(subject, seconds=100, c=again)
    assert (state(subject)["restartCount"], state(subject)["ready"], taken.actions) == (5, True, ())


def test_run_of_rewound_pod_that_ends_at_once_is_followed_by_back_off():
    subject, later = rewound(seconds=50)
    ended = replace(later, exit=Exit(code=1, at=START + timedelta(seconds=60)))
    subject, _ = step_once(subject, seconds=100, c=ended)
    at = START + timedelta(seconds=100)
    failed = replace(RUNNING, restarts=5, started=at, exit=Exit(code=1, at=at))
    subject, taken = step_once(subject, seconds=100, c=failed)
    assert (state(subject)["restartCount"], taken.actions) == (5, ())
    assert state(subject)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert step_once(subject, seconds=500, c=failed)[1].actions == (StartContainer("c", 6),)


def test_later_run_of_rewound_pod_that_goes_on_is_kept():
    subject, later = rewound(seconds=50)
    subject, taken = step_once(subject, seconds=100, c=later)
    assert (state(subject)["restartCount"], state(subject)["ready"], taken.actions) == (4, True, ())


def test_pod_rewound_to_before_its_first_run_has_the_run_of_now():
    _, later = rewound(seconds=50)
    subject, taken = step_once(pod(), seconds=100, c=later)
    assert (state(subject)["restartCount"], state(subject)["ready"], taken.actions) == (4, True, ())


def test_deleted_pod_is_removed_after_last_process_with_sidecars_last():
    subject = pod(init=[container("side", restartPolicy="Always")])
    subject, _ = step_once(subject, c=RUNNING, side=RUNNING)
    subject = with_metadata(
        subject, deletionTimestamp=format_time(START + timedelta(seconds=30)), deletionGracePeriodSeconds=30
    )
    assert step_once(subject, c=RUNNING, side=RUNNING)[1].actions == (StopContainer("c"),)
    stopping = replace(RUNNING, is_stopping=True)
    assert step_once(subject, c=stopping, side=RUNNING)[1].actions == ()
    ended = replace(RUNNING, exit=Exit(code=0, at=START))
    assert step_once(subject, c=ended, side=RUNNING)[1].actions == (StopContainer("side"),)
    assert isinstance(step_once(subject, c=ended, side=ended)[1].effects[-1], DeleteObject)


def test_deadline_stops_processes_before_pod_fails():
    subject, _ = step_once(pod(activeDeadlineSeconds=10), c=RUNNING)
    same, taken = step_once(subject, seconds=10, c=RUNNING)
    assert taken.actions == (StopContainer("c", 30.0),)
    assert same["status"]["phase"] == "Running"
    failed, _ = step_once(subject, seconds=11, c=replace(RUNNING, exit=Exit(code=143, at=START)))
    assert (failed["status"]["phase"], failed["status"]["reason"]) == ("Failed", "DeadlineExceeded")


def test_changed_image_restarts_process_at_once():
    subject, _ = step_once(pod(), c=RUNNING)
    subject = {**subject, "spec": {**subject["spec"], "containers": [container(image="nginx:2")]}}
    assert step_once(subject, c=RUNNING)[1].actions == (StopContainer("c"),)
    ended = replace(RUNNING, exit=Exit(code=143, at=START), is_stopping=True)
    assert step_once(subject, c=ended)[1].actions == (StartContainer("c", 1),)


@pytest.mark.parametrize(
    ("deletion", "in_spec", "seconds"),
    [(None, None, 30), (None, 5, 5), (None, 0, 0), (2, 5, 2), (60, None, 60), (0, 5, 0)],
)
def test_grace_period_is_that_of_deletion_or_spec(deletion, in_spec, seconds):
    subject = pod(terminationGracePeriodSeconds=in_spec)
    if deletion is not None:
        subject = with_metadata(
            subject, deletionTimestamp=format_time(START), deletionGracePeriodSeconds=deletion
        )
    assert grace_seconds(subject) == seconds
