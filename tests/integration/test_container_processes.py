"""Containers that run as processes, in a manager that is stopped."""

import os
from pathlib import Path

import pytest
import yaml

from mockube.container_runtime.simulation_values import HOST, NAMESPACES, PROCESS
from tests.support.controllers.simulated import simulated_cluster
from tests.support.event_loop import until
from tests.support.pod_network import require_pod_network

SCRIPT = "trap '' TERM; touch {}; while :; do sleep 1000; done"
"""A program that ignores the signal that should end it."""


def children():
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


@pytest.mark.parametrize(("network", "helpers"), [(HOST, 1), (NAMESPACES, 2)])
async def test_manager_whose_stop_is_cancelled_leaves_no_process(tmp_path, network, helpers):
    """The clock does not advance, so that the container would not be killed without the second cancellation."""
    if network == NAMESPACES:
        await require_pod_network()
    before, is_running = children(), tmp_path / "running"
    images = tmp_path / "images.yaml"
    images.write_text(yaml.safe_dump({"nginx": {"command": ["sh", "-c", SCRIPT.format(is_running)]}}))
    options = {"container_runtime": PROCESS, "pod_network": network, "images": images}
    async with simulated_cluster(nodes=1, **options) as cluster:
        await cluster.run(automountServiceAccountToken=False)
        await until(is_running.exists)
        parts = "the container, what watches its process group, and what holds its network"
        assert len(children() - before) == 1 + helpers, parts
    await until(lambda: children() == before)
