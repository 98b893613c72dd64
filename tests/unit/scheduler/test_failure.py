"""What follows if no node is feasible: whether a preemption is tried, what the message says, and which claim is released."""

import pytest
from msgspec.structs import replace

from mockube.scheduler.choice import FeasibleNodes
from mockube.scheduler.failure import SchedulingFailure, failure_of, may_preempt
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.preemption import Candidate, Preemption
from mockube.scheduler.profiles import DEFAULT_PROFILE
from tests.support.controllers.scheduler_objects import info, node, pod, snapshot

CPU = Rejection(("Insufficient cpu",), plugin="NodeResourcesFit")
NO_CPU = FeasibleNodes((), {"a": CPU})
ERROR = FeasibleNodes((), prefilter_rejection=Rejection(("broken",), is_error=True))
OF_CLAIMS = Rejection(("no class",), is_unresolvable=True, plugin="DynamicResources")
OF_VOLUMES = OF_CLAIMS._replace(reasons=("no claim",), plugin="VolumeBinding")


def of_all(rejection):
    return FeasibleNodes((), {"a": rejection}, rejection)


def state(minor="1.37", nodes=1, settings=()):
    return snapshot([node(name) for name in "ab"[:nodes]], minor=minor, settings=settings)


WITHOUT_DEVICES = replace(DEFAULT_PROFILE, allocates_devices=False)
OFF = [("DynamicResourceAllocation", False)]


@pytest.mark.parametrize(
    ("seen", "found", "profile", "is_tried"),
    [
        pytest.param(state(), NO_CPU, DEFAULT_PROFILE, True, id="rejected nodes"),
        pytest.param(state(nodes=0), FeasibleNodes(()), DEFAULT_PROFILE, False, id="no nodes"),
        pytest.param(state(), ERROR, DEFAULT_PROFILE, False, id="an error"),
        pytest.param(
            state(),
            NO_CPU,
            replace(DEFAULT_PROFILE, preemption=None),
            False,
            id="a profile without preemption",
        ),
        pytest.param(state(), of_all(OF_CLAIMS), DEFAULT_PROFILE, True, id="rejected by devices"),
        pytest.param(state(), of_all(OF_VOLUMES), DEFAULT_PROFILE, False, id="rejected before devices"),
        pytest.param(state(), of_all(OF_VOLUMES), WITHOUT_DEVICES, True, id="a profile without devices"),
        pytest.param(state("1.33", settings=OFF), of_all(OF_VOLUMES), DEFAULT_PROFILE, True, id="no devices"),
    ],
)
def test_preemption_is_tried_after_the_state_of_devices_is_known(seen, found, profile, is_tried):
    assert may_preempt(seen, found, profile) is is_tried


def failure(seen, found, preemption=Preemption(), profile=DEFAULT_PROFILE):  # noqa: B008 - it is frozen
    return failure_of(info(pod()), seen, found, preemption, profile)


NO_HELP = Preemption(problem="it does not help", keeps_nomination=True)
REJECTED = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize(
    ("minor", "found", "preemption", "message"),
    [
        ("1.36", FeasibleNodes(()), Preemption(), "no nodes available to schedule pods"),
        ("1.36", ERROR, Preemption(), "broken"),
        ("1.37", NO_CPU, Preemption(), REJECTED),
        ("1.37", NO_CPU, NO_HELP, f"{REJECTED} preemption: it does not help"),
        ("1.36", NO_CPU, NO_HELP, f"{REJECTED} no new claims to deallocate, preemption: it does not help"),
        ("1.36", NO_CPU, Preemption.failed("it failed"), f"{REJECTED} preemption: it failed"),
        ("1.37", of_all(OF_VOLUMES), Preemption(), "0/1 nodes are available: no claim. not found"),
    ],
)
def test_message_has_the_reasons_and_what_the_plugins_add(minor, found, preemption, message):
    seen = state(minor, nodes=0 if message.startswith("no nodes") else 1)
    assert failure(seen, found, preemption).message == message


def test_nomination_stays_if_no_preemption_could_be_tried():
    assert failure(state(), of_all(OF_VOLUMES)).keeps_nomination
    assert failure(state(), NO_CPU, NO_HELP).keeps_nomination
    assert not failure(state(), NO_CPU).keeps_nomination
    assert not failure(state(), FeasibleNodes(())).keeps_nomination


def test_candidate_ends_the_nomination_before():
    candidate = Candidate(node="a", victims=[info(pod("low"))], pdb_violations=0)
    found = failure(state("1.36"), NO_CPU, Preemption(candidates=[candidate]))
    assert (found.candidate, found.message, found.keeps_nomination) == (candidate, REJECTED, False)


def test_older_scheduler_without_devices_says_nothing_of_claims():
    assert failure(state("1.36"), NO_CPU, profile=WITHOUT_DEVICES).message == REJECTED


@pytest.mark.parametrize("length", [1024, 1025])
def test_note_of_an_event_is_shortened(length):
    text = "x" * length
    note = SchedulingFailure(message=text).note
    assert note == (text if length == 1024 else f"{'x' * 1020} ...")
