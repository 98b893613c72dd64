"""A pod reaches the end state that its containers' programs define, at any times of evaluation."""

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

PROGRAMS = {
    ("true",): (0, 0),
    ("false",): (0, 1),
    ("sleep", "7"): (7, 0),
    ("sh", "-c", "sleep 3; exit 4"): (3, 4),
    ("sleep", "infinity"): (None, 0),
}
programs = st.sampled_from(sorted(PROGRAMS))
glances = st.lists(st.integers(1, 40), min_size=1, max_size=12)
HORIZON = 100


def run_with_pauses(simulated, pauses):
    for seconds in pauses:
        simulated.pass_time(seconds)
    return simulated.pass_time(HORIZON)


def model(init, main):
    """Return the phase and the exit codes of a pod that is never restarted, from the programs alone."""
    for argv in init:
        seconds, code = PROGRAMS[argv]
        if seconds is None:
            return "Pending", None
        if code:
            return "Failed", None
    if any(PROGRAMS[argv][0] is None for argv in main):
        return "Running", None
    codes = [PROGRAMS[argv][1] for argv in main]
    return ("Failed" if any(codes) else "Succeeded"), codes


@given(st.lists(programs, max_size=3), st.lists(programs, min_size=1, max_size=3), glances, st.booleans())
def test_never_restarted_pod_ends_with_result_of_its_programs(init, main, pauses, details):
    subject = pod(
        *(container(f"c{at}", *argv) for at, argv in enumerate(main)),
        init=[container(f"i{at}", *argv) for at, argv in enumerate(init)],
        policy="Never",
    )
    simulated = run_with_pauses(SimulatedPod(subject, context=node_context(details=details)), pauses)
    phase, codes = model(init, main)
    assert simulated.phase == phase
    if codes is not None:
        assert list(simulated.containers().values()) == codes
        assert simulated.due is None


@given(st.lists(programs, min_size=1, max_size=3), glances, st.sampled_from(["Always", "OnFailure", "Never"]))
def test_more_frequent_syncs_change_nothing(main, pauses, policy):
    def subject():
        return pod(*(container(f"c{at}", *argv) for at, argv in enumerate(main)), policy=policy)

    seldom = SimulatedPod(subject()).pass_time(sum(pauses))
    often = SimulatedPod(subject())
    for seconds in pauses:
        often.pass_time(seconds)
        writes = often.writes
        often.step_until_idle()
        assert often.writes == writes
    assert often.pod == seldom.pod


@given(programs, glances, st.integers(0, 60), st.integers(1, 60))
def test_deleted_pod_ends_within_grace_period(argv, pauses, terminate_after, grace):
    script = {"mockube.dev/terminate-after": f"{terminate_after}s"}
    simulated = SimulatedPod(pod(container("c", *argv), annotations=script))
    for seconds in pauses:
        simulated.pass_time(seconds)
    assume(not simulated.removed)
    assert simulated.delete(grace=grace).pass_time(grace).removed


@given(st.integers(0, 6), st.integers(1, 255), glances)
def test_pod_crashes_as_often_as_annotated(times, code, pauses):
    script = {"mockube.dev/crash-times": str(times), "mockube.dev/fail-with-code": str(code)}
    simulated = run_with_pauses(SimulatedPod(pod(annotations=script)), [*pauses, 1000])
    assert simulated.containers() == {"c": "running"}
    assert simulated.status["containerStatuses"][0]["restartCount"] == times
    assert simulated.ready
