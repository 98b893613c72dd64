"""The cgroups that limit the memory of container processes."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from mockube.container_runtime.process.command import CommandSpec, Identity
from mockube.container_runtime.process.local_process import start_process
from mockube.container_runtime.process.memory_groups import MemoryGroup, MemoryGroups

LIMIT = 64 << 20


def machine(tmp_path, *, groups, mounts):
    """Return a folder such as /proc/self of a machine; mounts have the kind, the options, and the root that is mounted."""
    process = tmp_path / "self"
    process.mkdir()
    lines = [
        f"30 23 0:26 {root} {tmp_path}/{name} rw,nosuid - {kind} {kind} {options}"
        for name, kind, options, root in mounts
    ]
    (process / "mountinfo").write_text("\n".join(lines))
    (process / "cgroup").write_text("\n".join(groups))
    return process


def group(folder, controllers="", *files):
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").touch()
    (folder / "cgroup.subtree_control").write_text(controllers)
    for name in files:
        (folder / name).touch()
    return folder


def test_group_of_the_first_version_is_below_that_of_the_manager(tmp_path):
    own = group(tmp_path / "memory" / "a" / "b")
    mounts = [("cpu", "cgroup", "rw,cpu", "/"), ("memory", "cgroup", "rw,memory", "/")]
    process = machine(tmp_path, groups=["5:cpu:/x", "4:memory:/a/b", "0::/"], mounts=mounts)
    limited = MemoryGroups(process).limit(LIMIT)
    assert Path(limited.processes).parent.parent == own


def test_group_of_the_second_version_is_where_groups_have_limits_of_memory(tmp_path):
    top = group(tmp_path / "cgroup", "cpu memory")
    with_limits = group(top / "app.slice", "cpu memory pids")
    group(with_limits / "mockube.service")
    mounts = [("cgroup", "cgroup2", "rw", "/")]
    process = machine(tmp_path, groups=["0::/app.slice/mockube.service"], mounts=mounts)
    groups = MemoryGroups(process)
    assert [Path(groups.limit(LIMIT).processes).parent.parent for _ in range(2)] == [with_limits] * 2


def test_part_of_the_hierarchy_may_be_mounted(tmp_path):
    top = group(tmp_path / "cgroup", "memory")
    process = machine(tmp_path, groups=["0::/docker/1"], mounts=[("cgroup", "cgroup2", "rw", "/docker/1")])
    assert Path(MemoryGroups(process).limit(LIMIT).processes).parent.parent == top


@pytest.mark.parametrize("controllers", ["", "cpu pids"])
def test_machine_without_limits_of_memory_has_no_group(tmp_path, controllers):
    group(tmp_path / "cgroup" / "a", controllers)
    (tmp_path / "cgroup" / "cgroup.subtree_control").write_text(controllers)
    mounts = [("cgroup", "cgroup2", "rw", "/")]
    assert MemoryGroups(machine(tmp_path, groups=["0::/a"], mounts=mounts)).limit(LIMIT) is None
    assert MemoryGroups(tmp_path / "no-proc").limit(LIMIT) is None


def test_groups_of_managers_that_have_ended_are_removed(tmp_path):
    own = group(tmp_path / "memory")
    for name in ("mockube-0-1", f"mockube-{os.getpid()}-7", "other"):
        (own / name).mkdir()
    MemoryGroups(machine(tmp_path, groups=["4:memory:/"], mounts=[("memory", "cgroup", "memory", "/")]))
    assert {path.name for path in own.iterdir() if path.is_dir()} == {f"mockube-{os.getpid()}-7", "other"}


async def test_all_processes_of_a_group_of_the_first_version_are_killed_with_one(tmp_path):
    own = group(tmp_path / "memory")
    process = machine(tmp_path, groups=["4:memory:/"], mounts=[("memory", "cgroup", "memory", "/")])
    folder = Path(MemoryGroups(process).limit(LIMIT).processes).parent
    (folder / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    limited = MemoryGroup(folder)
    others = [await asyncio.create_subprocess_exec("sleep", "600") for _ in range(2)]
    (folder / "cgroup.procs").write_text("".join(f"{other.pid}\n" for other in others))
    with limited.killed_as_a_whole():
        assert not limited.has_killed()
        event, _ = (folder / "cgroup.event_control").read_text().split()
        os.eventfd_write(int(event), 1)
        assert [await other.wait() for other in others] == [-signal.SIGKILL] * 2
    assert limited.has_killed()
    assert folder.parent == own


@pytest.mark.thorough
async def test_process_that_takes_more_than_its_limit_is_killed():
    memory = MemoryGroups().limit(LIMIT)
    if memory is None:
        pytest.skip("this machine allows no cgroups with limits of memory")
    group_folder = Path(memory.processes).parent
    script = f"bytearray({4 * LIMIT}); print('not limited')"
    spec = CommandSpec(
        argv=[sys.executable, "-I", "-S", "-c", script],
        environment={},
        directory=Path("/"),
        identity=Identity(),
        memory_group=memory.processes,
    )
    process = await start_process(spec)
    try:
        assert (await process.wait(), memory.has_killed()) == (137, True)
    finally:
        await process.end()
        memory.remove()
    assert group_folder.name not in os.listdir(group_folder.parent)  # noqa: PTH208 - names alone
