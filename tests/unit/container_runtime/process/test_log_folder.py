"""Logs of processes outlive the program that ran them, as long as their pods exist."""

import pytest

from mockube.container_runtime.process.log_folder import LogFolder
from mockube.container_runtime.runs import run_of
from tests.support.container_runtimes import lines_of, running_machine
from tests.support.event_loop import until


@pytest.mark.thorough
async def test_log_is_found_by_the_next_run_of_the_program(tmp_path):
    async with running_machine("process", logs=tmp_path) as machine:
        pod = machine.pod("echo done")
        machine.runtime.start_container(pod, "c", 0)
        ended = await machine.until_exit(pod)
    async with running_machine("process", logs=tmp_path, uids={"uid-1"}) as machine:
        assert await lines_of(machine, ended, run_of(ended, "c")) == [(1, b"done\n")]


async def test_logs_of_pods_that_are_gone_are_removed(tmp_path):
    folder = LogFolder(tmp_path)
    for uid in ("uid-1", "uid-2"):
        folder.make_log(uid, "c", 0).touch()
    async with running_machine("process", logs=tmp_path, uids={"uid-1"}) as machine:
        await until(lambda: folder.pods() == {"uid-1"})
        machine.runtime.remove_pod("uid-1")
        await until(lambda: folder.pods() == set())


def test_new_log_replaces_the_oldest_and_one_of_the_same_run(tmp_path):
    folder = LogFolder(tmp_path)
    for restarts in range(3):
        folder.make_log("uid", "c", restarts).write_text("earlier")
    assert not folder.make_log("uid", "c", 2).exists()
    assert [path.name for path in (tmp_path / "uid").iterdir()] == ["c.1.log"]
