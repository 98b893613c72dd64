"""The disk of a node, which several file systems share."""

import pytest

from mockube.container_runtime.simulated.shell.node_disk import NodeDisk
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, NoSpace
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem


@pytest.fixture
def machine():
    files = [FileSystem(root=FileEntry(mode=0o777)) for _ in range(2)]
    reports = []
    disk = NodeDisk(
        100_000,
        lambda: sum(each.inodes.used for each in files if each.inodes.quota.capacity is None),
        lambda: reports.append(disk.reserved),
    )
    for each in files:
        each.inodes.quota.disk = disk
    return *files, reports


def zeros(count):
    return FileEntry(data=b"", zeros=count)


def test_file_systems_share_the_space(machine):
    first, second, _ = machine
    first.inodes.put("/x", zeros(60_000))
    with pytest.raises(NoSpace):
        second.inodes.put("/x", zeros(50_000))
    assert (first.inodes.free(), second.inodes.free(), second.inodes.quota.size) == (40_000, 40_000, 100_000)
    first.remove("/x")
    second.inodes.put("/x", zeros(50_000))


def test_file_system_with_a_capacity_takes_no_space_of_the_disk(machine):
    first, second, _ = machine
    first.inodes.quota.capacity = 200_000
    first.inodes.put("/x", zeros(150_000))
    second.inodes.put("/x", zeros(90_000))


def test_scarcity_is_reported_at_each_part_that_is_filled(machine):
    first, _, reports = machine
    first.inodes.put("/a", zeros(80_000))
    assert reports == []
    first.inodes.put("/b", zeros(5_000))
    first.inodes.put("/c", zeros(200))
    assert reports == [85_000]
    first.inodes.put("/d", zeros(5_000))
    assert reports == [85_000, 90_200]
    first.remove("/a")
    first.inodes.put("/e", zeros(60_000))
    assert reports == [85_000, 90_200]
    first.inodes.put("/f", zeros(15_000))
    assert reports == [85_000, 90_200, 85_200]
