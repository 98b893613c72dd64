"""Files of many zeros take space and no memory; a file system that is full refuses writes."""

from contextlib import nullcontext

import pytest

from mockube.container_runtime.simulated.shell.memory import Memory, OutOfMemory
from mockube.container_runtime.simulated.shell.process import Host
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.mount_table import Mount
from tests.support.shell_scripts import NOW, run

MIB = 1 << 20


def container(capacity=10 * MIB):
    volume = FileSystem(capacity=capacity, root=FileEntry(mode=0o777))
    files = FileSystem({"/m": FileEntry()}, mounts={"/m": Mount(files=volume)})
    return Host(hostname="web-1", files=files, now=lambda: NOW, programs=PROGRAMS), volume


def script(text, **options):
    host, volume = container(**options)
    return *run("sh", "-c", text, host=host)[:3], volume


def test_large_file_of_zeros_takes_no_memory():
    text = "dd if=/dev/zero of=/m/x bs=1M count=5000; ls -l /m/x | awk '{print $5}'; du -m /m/x"
    output, errors, code, volume = script(text, capacity=None)
    assert output == "5242880000\n5000\t/m/x\n"
    assert errors.startswith("5000+0 records in\n5000+0 records out\n5242880000 bytes (4.9GB) copied")
    assert (code, volume.inodes.used, volume.inodes.size) == (0, 5000 * MIB, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dd if=/dev/zero of=/m/x bs=3M count=5", "dd: error writing '/m/x': No space left on device"),
        ("dd if=/dev/zero of=/m/x", "dd: error writing '/m/x': No space left on device"),
        ("head -c 20M /dev/zero > /m/x", "head: write error: No space left on device"),
        ("cat /dev/zero > /m/x", "cat: write error: No space left on device"),
        ("fallocate -l 11M /m/x", "fallocate: fallocate '/m/x': No space left on device"),
        ("fallocate -l 9M /m/x; cp /m/x /m/y", "cp: can't create '/m/y': No space left on device"),
    ],
)
def test_full_volume_refuses_writes(text, words):
    _, errors, code, volume = script(text)
    assert errors.splitlines()[0] == words
    assert code == 1
    assert volume.inodes.used <= 10 * MIB


def test_dd_fills_what_is_left():
    output, errors, _, volume = script("dd if=/dev/zero of=/m/x bs=3M count=5; df -k /m | tail -1")
    assert errors.splitlines()[1:] == ["4+0 records in", "3+0 records out"]
    assert volume.inodes.used == 10 * MIB
    assert output.split() == ["/dev/sdb", "10240", "10240", "0", "100%", "/m"]


def test_removed_file_gives_its_space_back():
    assert script("fallocate -l 9M /m/x; rm /m/x; fallocate -l 9M /m/y")[2] == 0


def test_sparse_file_takes_no_space():
    text = "truncate -s 10G /m/x; stat -c '%s %b' /m/x; truncate -s -1K /m/x; truncate -s +1 /m/x; stat -c %s /m/x"
    output, errors, code, volume = script(text)
    assert (output, errors, code, volume.inodes.used) == ("10737418240 0\n10737417217\n", "", 0, 0)


def test_copies_and_moves_of_zeros_stay_zeros():
    output, _, code, volume = script(
        "head -c 3M /dev/zero > /m/x; cp /m/x /m/y; mv /m/y /m/z; stat -c %s /m/z"
    )
    assert (output, code, volume.inodes.size) == ("3145728\n", 0, 0)


def test_data_and_zeros_are_read_in_order():
    text = "cd /m; printf ab > x; dd if=/dev/zero bs=5000 count=1 >> x 2>/dev/null; printf cd >> x; wc -c < x; tail -c 3 x | od -c | head -1"
    assert script(text)[0] == "5004\n0000000  \\0   c   d\n"


def test_file_that_is_too_large_for_memory_is_not_read():
    assert (
        script("fallocate -l 1G /m/x; cat /m/x", capacity=None)[1]
        == "cat: can't open '/m/x': File too large\n"
    )


def test_df_lists_the_mounts():
    lines = script("df -h; df /none")[0].splitlines()
    assert [line.split()[-1] for line in lines[1:3]] == ["/", "/m"]
    assert lines[2].split()[1:] == ["10.0M", "0", "10.0M", "0%", "/m"]


@pytest.mark.thorough
def test_large_file_that_is_not_kept_takes_the_space_that_it_has():
    output, errors, code, volume = script(
        "yes > /m/x; du -m /m/x; cat /m/x; : > /m/x; echo new > /m/x; cat /m/x", capacity=50 * MIB
    )
    assert output == "50\t/m/x\nnew\n"
    assert errors.splitlines() == [
        "yes: write error: No space left on device",
        "cat: can't open '/m/x': File too large",
    ]
    assert (code, volume.inodes.used) == (0, 4)


@pytest.mark.parametrize(("size", "is_killed"), [("100M", True), ("1M", False), ("20M", False)])
def test_buffer_of_dd_is_memory(size, is_killed):
    host, _ = container(capacity=None)
    host.memory = Memory(lambda: 32 * MIB)
    with pytest.raises(OutOfMemory) if is_killed else nullcontext():
        run("sh", "-c", f"dd if=/dev/zero of=/m/x bs={size} count=1", host=host)
    # A device without bytes fills no buffer.
    run("sh", "-c", "dd if=/dev/null of=/m/y bs=100M count=1", host=host)


def test_long_list_shows_a_link_and_not_what_it_leads_to():
    text = "ln -s a /m/a; mkdir /m/d; touch /m/d/f; ln -s d /m/l; ls -l /m/a /m/l | cut -d ' ' -f 1; ls /m/l; ls -l /m/l/ | wc -l"
    assert script(text)[0].splitlines() == ["lrwxrwxrwx", "lrwxrwxrwx", "f", "2"]
