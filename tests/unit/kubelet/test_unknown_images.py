"""The warnings about containers whose images nobody knows, and the condition of their pod."""

import pytest
from msgspec.structs import replace

from mockube.apimachinery import conditions
from mockube.container_runtime.behavior import WAITS, RunBehavior, end_without_program
from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.state import NEVER_RAN
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.pod_lifecycle.container_status import Container, Role
from mockube.kubelet.pod_lifecycle.unknown_images import unknown_image_events, with_assumptions
from mockube.kubelet.step_effects import EmitEvent
from tests.support.controllers.pods import START, container, pod
from tests.support.images import PREDICTIONS

UNKNOWN = "registry.example.com/team/app:1"
SERVICE = RunBehavior(seconds=None)


def subject(*argv, image=UNKNOWN, program=SERVICE, process=None, script=None, waits=False):
    spec = container("c", *argv, image=image)
    return Container(
        spec=spec,
        pod=pod(spec),
        role=Role.MAIN,
        restart_policy="Always",
        program=program,
        waits_for_programs=waits,
        script=script or Script(),
        has_ids=False,
        process=process,
        context=ContainerContext(predictions=PREDICTIONS),
    )


@pytest.mark.parametrize(
    ("fields", "is_warned"),
    [
        ({}, True),
        ({"image": "nginx:1.25"}, False),
        ({"process": NEVER_RAN}, False),
        ({"script": Script(run="echo")}, False),
        ({"script": Script(runs={"other": "echo"})}, True),
        ({"script": Script(exit_after=3.0)}, False),
    ],
)
def test_command_of_an_unknown_image_is_reported(fields, is_warned):
    events = unknown_image_events(subject(**fields))
    assert [(event.reason, event.of_owner) for event in events] == (
        [("NotSimulated", True)] if is_warned else []
    )


def test_own_command_of_a_container_is_known():
    assert unknown_image_events(subject("sleep", "1d")) == ()


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        ({}, end_without_program(None)),
        ({"program": RunBehavior(seconds=5, exit_code=3)}, end_without_program(3)),
        ({"program": RunBehavior(seconds=5), "waits": True}, WAITS),
    ],
)
def test_warning_says_what_the_container_does_instead(fields, end):
    [event] = unknown_image_events(subject(**fields))
    assert event.message.endswith(end)


def with_volume(image, *, mounted=True, waits=False):
    found = subject("sleep", "1d", waits=waits)
    mounts = [{"name": "v" if mounted else "other", "mountPath": "/v"}]
    spec = {**found.spec, "volumeMounts": mounts}
    volumes = [{"name": "other", "emptyDir": {}}, {"name": "v", "image": {"reference": image}}]
    return replace(found, spec=spec, pod=pod(spec, volumes=volumes))


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (with_volume(UNKNOWN), f"the image {UNKNOWN} is not simulated: the volume v is empty"),
        (with_volume(UNKNOWN, waits=True), f"the image {UNKNOWN} is not simulated: {WAITS}"),
        (with_volume(UNKNOWN, mounted=False), None),
        (with_volume("nginx:1.25"), None),
        (with_volume(""), None),
    ],
)
def test_volume_of_an_unknown_image_is_reported(found, message):
    assert [event.message for event in unknown_image_events(found)] == ([] if message is None else [message])


def warning(text, reason="NotSimulated"):
    return EmitEvent("Warning", reason, text)


def test_condition_collects_the_warnings():
    plain = [{"type": "Ready", "status": "True"}]
    assert with_assumptions(plain, [warning("x", "Failed")], START) is plain
    once = with_assumptions(plain, [warning("a"), warning("b"), warning("a")], START)
    assert conditions.find(once, "mockube.dev/NotSimulated")["message"] == "a; b"
    twice = with_assumptions(once, [warning("b"), warning("c")], START)
    assert conditions.find(twice, "mockube.dev/NotSimulated")["message"] == "a; b; c"
    long = with_assumptions(twice, [warning("x" * 2000)], START)
    assert len(conditions.find(long, "mockube.dev/NotSimulated")["message"]) == 1024
