"""What was observed of probes and hooks in real time determines the container's status."""

from datetime import timedelta

from msgspec.structs import replace

from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.records import Records
from mockube.kubelet.pod_lifecycle.observations import (
    NOT_OBSERVED,
    NOT_PROBED,
    PENDING_HOOK,
    SUCCESS,
    HookResult,
    ObservedRun,
    ProbeHistory,
    ProbeResult,
)
from mockube.kubelet.pod_lifecycle.pod import step
from mockube.kubelet.pod_lifecycle.probing import Probe, ProbeTimes
from mockube.kubelet.probes.live_handlers import LiveHandlers
from mockube.kubelet.probes.totals import TotalsByPod
from mockube.kubelet.step_effects import RunHook
from tests.support.container_runtimes import simulated_runtime
from tests.support.controllers.pods import START, SimulatedPod, container, node_context, pod

FAILURE = ProbeResult(is_success=False, message="Readiness probe failed: ")
TIMES = ProbeTimes(initial_delay=0, period=10, timeout=1, successes=1, failures=3)
PROBE = {"exec": {"command": ["nc", "-z", "db", "5432"]}}
HOOK = {"exec": {"command": ["wget", "db"]}}


def observed(**fields):
    return replace(node_context(details=True), observed={"c": ObservedRun(restarts=0, **fields)})


def history(*results, times=TIMES):
    """Return the results of attempts, one in each period."""
    subject = ProbeHistory(times)
    for number, result in enumerate(results):
        subject.add(number * times.period, result)
    return subject


def test_equal_results_are_one_change_up_to_the_middle_of_the_next_period():
    assert history(FAILURE, FAILURE, SUCCESS).results() == (
        (0.0, FAILURE),
        (15.0, SUCCESS),
        (25.0, NOT_PROBED),
    )


def test_attempts_that_were_left_out_have_no_result():
    subject = history(SUCCESS)
    subject.add(50, SUCCESS)
    assert subject.results() == ((0.0, SUCCESS), (5.0, NOT_PROBED), (45.0, SUCCESS), (55.0, NOT_PROBED))


def test_result_has_an_effect_until_its_threshold_is_reached():
    subject = history()
    assert [subject.add(at, FAILURE) for at in range(0, 50, 10)] == [True, True, True, False, False]
    assert [subject.add(at, SUCCESS) for at in range(50, 70, 10)] == [True, False]


def test_many_changes_forget_the_first_ones():
    results = history(*[SUCCESS, FAILURE] * 5_000).results()
    assert len(results) < 200
    assert results[0] == (0.0, NOT_PROBED)
    assert results[-2][1] is FAILURE


def test_container_without_results_is_not_ready():
    context = observed(probes={Probe.READINESS: NOT_OBSERVED})
    subject = SimulatedPod(pod(container(readinessProbe=PROBE)), context=context).pass_time(600)
    assert not subject.ready
    assert [event.reason for event in subject.events if event.type == "Warning"] == []


def test_container_is_ready_after_the_observed_success():
    context = observed(probes={Probe.READINESS: history(FAILURE, FAILURE, SUCCESS).results()})
    subject = SimulatedPod(pod(container(readinessProbe=PROBE)), context=context)
    assert [subject.pass_time(10).ready for _ in range(3)] == [False, True, True]


def test_results_of_another_run_do_not_count():
    runs = ObservedRun(restarts=1, probes={Probe.READINESS: history(SUCCESS).results()})
    context = replace(node_context(), observed={"c": runs})
    assert not SimulatedPod(pod(container(readinessProbe=PROBE)), context=context).pass_time(60).ready


def test_post_start_hook_runs_before_the_container_is_reported():
    subject = pod(container(lifecycle={"postStart": HOOK}))
    pending = step(
        subject, observed(hooks={"postStart": HookResult(seconds=float("inf"), is_pending=True)}), START
    )
    assert pending.actions == (RunHook("c", "postStart", 0),)
    ended = HookResult(seconds=7.0, began=START)
    simulated = SimulatedPod(subject, context=observed(hooks={"postStart": ended})).pass_time(7)
    assert simulated.containers() == {"c": "running"}


def test_pre_stop_hook_runs_within_the_grace_period():
    context = observed(hooks={"preStop": HookResult(seconds=float("inf"), is_pending=True)})
    simulated = SimulatedPod(pod(container(lifecycle={"preStop": HOOK})), context=context).delete(grace=20)
    stopping = step(simulated.pod, context, START + timedelta(seconds=1))
    assert stopping.actions == (RunHook("c", "preStop", 0),)
    assert not simulated.pass_time(19).removed
    assert simulated.pass_time(1).removed


def test_commands_run_in_real_time_if_one_of_them_uses_the_network():
    quick = {"exec": {"command": ["true"]}}
    subject = container(image="busybox", readinessProbe=PROBE, livenessProbe=quick)
    assert simulated_runtime().live_handlers(pod(subject), subject) == {
        "readinessProbe": ("nc", "-z", "db", "5432"),
        "livenessProbe": ("true",),
    }
    for subject in (container(), container(readinessProbe=quick)):
        assert simulated_runtime().live_handlers(pod(subject), subject) == {}


def test_commands_run_in_real_time_that_read_api_objects():
    volume = {"name": "v", "configMap": {"name": "m"}}
    script = {"exec": {"command": ["sh", "/scripts/probe.sh"]}}
    mount = {"name": "v", "mountPath": "/scripts"}
    variable = {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "mode"}}}
    mounted = container(livenessProbe=script, volumeMounts=[mount])
    named = container(livenessProbe={"exec": {"command": ["sh", "-c", "test $MODE"]}}, env=[variable])
    for subject in (mounted, named):
        assert simulated_runtime().live_handlers(pod(subject, volumes=[volume]), subject).keys() == {
            "livenessProbe"
        }


def test_probes_run_in_real_time_whose_files_a_hook_may_write():
    hook = {"exec": {"command": ["sh", "-c", "echo > /tmp/ready"]}}
    reader = {"exec": {"command": ["cat", "/tmp/ready"]}}
    subject = container(readinessProbe=reader, lifecycle={"postStart": hook})
    assert simulated_runtime().live_handlers(pod(subject), subject).keys() == {"readinessProbe", "postStart"}


def test_container_that_ran_before_the_manager_keeps_its_readiness():
    readiness = {"readinessProbe": PROBE, "startupProbe": PROBE, "lifecycle": {"postStart": HOOK}}
    tree = pod(container(image="busybox", **readiness))
    clock = SteppedClock()
    state = {"running": {"startedAt": format_time(clock.now() - timedelta(seconds=60))}}
    status = {"name": "c", "state": state, "ready": True, "started": True, "restartCount": 3}
    tree["status"] = {**tree["status"], "containerStatuses": [status]}
    seen = LiveHandlers(Records(), clock, simulated_runtime(clock), TotalsByPod(Records())).observations(
        tree
    )["c"]
    assert {seen.results(probe, 3) for probe in seen.probes} == {((0.0, SUCCESS), (60.0, NOT_PROBED))}
    assert seen.hook("postStart", 3) == HookResult()
    assert (seen.hook("postStart", 4), seen.results(Probe.READINESS, 4)) == (PENDING_HOOK, NOT_OBSERVED)


def test_probe_runs_in_real_time_when_a_client_has_written_files():
    runtime = simulated_runtime(SteppedClock())
    files, handlers = runtime.files, LiveHandlers(Records(), SteppedClock(), runtime, TotalsByPod(Records()))
    tree = pod(container(readinessProbe={"exec": {"command": ["cat", "/tmp/ready"]}}))
    assert not handlers.observations(tree)
    noted = [files.note_command("uid-1", "c") for _ in range(2)]
    assert noted == [True, False]
    assert handlers.observations(tree)["c"].probes == {Probe.READINESS: NOT_OBSERVED}
    runtime.remove_pod("uid-1")
    assert not handlers.observations(tree)
