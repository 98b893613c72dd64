"""When the preStop hooks of a pod that is stopped end, and which of them have to run in real time."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.container_runtime.behavior import SERVICE
from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.pod_lifecycle.container_status import Container, Role
from mockube.kubelet.pod_lifecycle.observations import HookResult, ObservedRun
from mockube.kubelet.pod_lifecycle.pre_stops import pending_pre_stops, pre_stop_ends
from mockube.kubelet.step_effects import RunHook
from tests.support.controllers.pods import START, container, pod

SLEEP = {"lifecycle": {"preStop": {"sleep": {"seconds": 20}}}}
EXEC = {"lifecycle": {"preStop": {"exec": {"command": ["curl", "x"]}}}}
RUNNING = {"restartCount": 2, "state": {"running": {"startedAt": format_time(START)}}}
LIVE = ContainerState(restarts=2, started=START, is_simulated=True)


def subject(name, process=LIVE, hook=None, **fields):
    spec = container(name, **fields)
    observed = {name: ObservedRun(restarts=2, hooks={"preStop": hook} if hook else {})}
    return Container(
        spec=spec,
        pod=pod(spec),
        role=Role.MAIN,
        restart_policy="Always",
        program=SERVICE,
        script=Script(),
        has_ids=False,
        process=process,
        context=ContainerContext(observed=observed),
    )


def containers(*main, init=(), ephemeral=()):
    return SimpleNamespace(init=init, main=main, ephemeral=ephemeral)


@pytest.mark.parametrize(
    ("status", "fields", "limit", "seconds", "ends_at"),
    [
        (RUNNING, SLEEP, 30, 5, 20),
        (RUNNING, SLEEP, 30, 20, None),
        (RUNNING, SLEEP, 10, 5, 10),
        (RUNNING, SLEEP, 10, 10, None),
        (RUNNING, {}, 30, 0, None),
        (None, SLEEP, 30, 5, None),
        (RUNNING, {**SLEEP, "process": None}, 30, 5, None),
    ],
)
def test_hook_of_a_live_container_ends_by_its_duration_or_the_grace_period(
    status, fields, limit, seconds, ends_at
):
    found = pre_stop_ends(
        containers((subject("c", **fields), status)), START, limit, START + timedelta(seconds=seconds)
    )
    assert found == ({} if ends_at is None else {"c": START + timedelta(seconds=ends_at)})


def test_all_containers_may_have_hooks():
    parts = [(subject(name, **SLEEP), RUNNING) for name in "abc"]
    found = containers(parts[0], init=[parts[1]], ephemeral=[parts[2]])
    assert sorted(pre_stop_ends(found, START, 30, START)) == ["a", "b", "c"]


def test_hook_that_waits_for_its_run_is_pending():
    pending = HookResult(seconds=float("inf"), is_pending=True)
    parts = [
        (subject("a", hook=pending, **EXEC), RUNNING),
        (subject("b", hook=HookResult(seconds=3), **EXEC), RUNNING),
        (subject("c", hook=pending, **EXEC), None),
    ]
    assert pending_pre_stops(containers(*parts), START) == (RunHook("a", "preStop", 2),)
