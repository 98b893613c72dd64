"""The disk of a node, which several file systems share."""

import pytest

from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileSystem, NoSpace
from mockube.container_runtime.simulated.shell.node_disk import NodeDisk


@pytest.fixture
def machine():
    files = [FileSystem(root=FileEntry(mode=0o777)) for _ in range(2)]
    reports = []
    disk = NodeDisk(
        100_000,
        lambda: sum(each.used for each in files if each.capacity is None),
        lambda: reports.append(disk.reserved),
    )
    for each in files:
        each.disk = disk
    return *files, reports


def zeros(count):
    return FileEntry(data=b"", zeros=count)


def test_file_systems_share_the_space(machine):
    first, second, _ = machine
    first.put("/x", zeros(60_000))
    with pytest.raises(NoSpace):
        second.put("/x", zeros(50_000))
    assert (first.free_bytes("/"), second.free_bytes("/"), second.disk_size) == (40_000, 40_000, 100_000)
    first.remove("/x")
    second.put("/x", zeros(50_000))


def test_file_system_with_a_capacity_takes_no_space_of_the_disk(machine):
    first, second, _ = machine
    first.capacity = 200_000
    first.put("/x", zeros(150_000))
    second.put("/x", zeros(90_000))


def test_scarcity_is_reported_at_each_part_that_is_filled(machine):
    first, _, reports = machine
    first.put("/a", zeros(80_000))
    assert reports == []
    first.put("/b", zeros(5_000))
    first.put("/c", zeros(200))
    assert reports == [85_000]
    first.put("/d", zeros(5_000))
    assert reports == [85_000, 90_200]
    first.remove("/a")
    first.put("/e", zeros(60_000))
    assert reports == [85_000, 90_200]
    first.put("/f", zeros(15_000))
    assert reports == [85_000, 90_200, 85_200]
