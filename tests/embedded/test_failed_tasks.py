"""A task of the manager that fails ends a control plane, and the log names it: one task for each place that starts tasks."""

import asyncio

import pytest

from mockube.embedded.control_plane import ClusterOptions, control_plane
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.processes.failing_program import fail

SUPPORTS = ["informers", "informer of pods", "reflector of pods", "resync of pods"]
EVENTS = ["events/write", "events/waiting", "events/series"]
CONTROLLERS = ["deployment-controller", "deployment/0", "kube-scheduler", "simulated-kubelets", "running"]
PARTS_OF_CONTROLLERS = [
    *("discovery", "quotas", "deletions", "orphans", "loop", "monitor", "leases", "statuses"),
    *("work in one cluster", "identity of the cluster"),
]


pytestmark = pytest.mark.slow


async def run_until_failed(task):
    async with control_plane(ClusterOptions(nodes=plain_nodes(1))):
        fail(asyncio.get_running_loop(), task)
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("task", [*SUPPORTS, *EVENTS, *CONTROLLERS, *PARTS_OF_CONTROLLERS])
async def test_failed_task_ends_control_plane_and_is_named(caplog, task):
    with pytest.raises(ExceptionGroup) as raised:
        await run_until_failed(task)
    assert raised.group_contains(RuntimeError)
    (entry,) = (text for text in map(caplog.handler.format, caplog.records) if f"{task} failed" in text)
    assert "Traceback (most recent call last)" in entry
    assert "RuntimeError: a fault in the program" in entry
