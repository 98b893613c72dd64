"""Containers that run as processes, in a manager that is stopped."""

import os
from pathlib import Path

import yaml

from mockube.container_runtime.simulation_values import PROCESS
from tests.support.controllers.simulated import simulated_cluster
from tests.support.event_loop import until

SCRIPT = "trap '' TERM; touch {}; while :; do sleep 1000; done"
"""A program that ignores the signal that should end it."""


def children():
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


async def test_manager_whose_stop_is_cancelled_leaves_no_process(tmp_path):
    """The clock does not advance, so that the container would not be killed without the second cancellation."""
    before, is_running = children(), tmp_path / "running"
    images = tmp_path / "images.yaml"
    images.write_text(yaml.safe_dump({"nginx": {"command": ["sh", "-c", SCRIPT.format(is_running)]}}))
    async with simulated_cluster(nodes=1, container_runtime=PROCESS, images=images) as cluster:
        await cluster.run(automountServiceAccountToken=False)
        await until(is_running.exists)
        assert len(children() - before) == 2, "the container, and what watches its process group"
    assert children() == before
