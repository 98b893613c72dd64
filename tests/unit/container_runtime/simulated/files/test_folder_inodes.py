"""Volumes in folders of this machine: what processes and simulated containers see of each other, and that no link leads out."""

import os

import pytest

from mockube.container_runtime.simulated.files.folder_inodes import MAX_READ_AT_ONCE, FolderInodes
from mockube.container_runtime.simulated.files.machine_folder import MachineFolder
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.access import ContainerUser
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError, NoSpace
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.mount_table import Mount


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "volume"
    path.mkdir()
    return path


@pytest.fixture
def volume(folder):
    return FileSystem(inodes=FolderInodes(MachineFolder(folder), FileEntry(mode=0o777)))


@pytest.fixture
def files(volume):
    """The files of a container that mounts the volume at /data."""
    return FileSystem({"/etc/passwd": FileEntry(data=b"simulated\n")}, mounts={"/data": Mount(files=volume)})


def test_file_of_a_simulated_container_is_in_the_folder(files, folder):
    files.make_directory("/data/a/b", parents=True)
    files.write("/data/a/b/f", b"x")
    files.write("/data/a/b/f", b"y", append=True)
    files.change("/data/a/b/f", mode=0o640)
    assert (folder / "a/b/f").read_bytes() == b"xy"
    assert (folder / "a/b/f").stat().st_mode & 0o777 == 0o640
    files.remove("/data/a", recursive=True)
    assert [*folder.iterdir()] == []


def test_file_of_a_process_is_in_the_simulated_container(files, folder):
    (folder / "d").mkdir()
    (folder / "d/f").write_text("hello")
    (folder / "link").symlink_to("d/f")
    assert [*files.children("/data")] == ["d", "link"]
    assert (files.read("/data/d/f"), files.read("/data/link")) == (b"hello", b"hello")
    (folder / "d/f").unlink()
    assert not files.exists("/data/d/f")


@pytest.mark.parametrize("target", ["/etc/passwd", "../secret", "../../../../../../../../etc/passwd"])
def test_link_out_of_the_folder_is_one_in_the_container(files, folder, target):
    (folder.parent / "secret").write_text("of the machine")
    (folder / "link").symlink_to(target)
    if "passwd" in target:
        assert files.read("/data/link") == b"simulated\n"
    else:
        assert not files.exists("/data/link")
        files.write("/data/link", b"x")
    assert (folder.parent / "secret").read_text() == "of the machine"


@pytest.mark.parametrize(
    "action",
    [
        lambda volume: volume.read("/out/secret"),
        lambda volume: volume.write("/out/new", b"x"),
        lambda volume: volume.write("/out/secret", b"x"),
        lambda volume: volume.change("/out/secret", mode=0o777),
        lambda volume: volume.inodes.folder.read("/out/secret", 10),
        lambda volume: volume.inodes.folder.read("/file", 10),
        lambda volume: volume.inodes.folder.write("/file", b"x", 0),
        lambda volume: volume.inodes.folder.write("/out/secret", b"x", 0, append=True),
        lambda volume: volume.inodes.folder.names("/out"),
        lambda volume: volume.inodes.folder.remove("/out/secret"),
        lambda volume: volume.inodes.folder.rename("/out/secret", "/stolen"),
        lambda volume: volume.inodes.folder.make_directory("/out/new"),
        lambda volume: volume.inodes.folder.change("/out/secret", user=0, group=0, mode=0o777, modified=1.0),
    ],
)
def test_folder_that_a_process_replaces_by_a_link_leads_nowhere(volume, folder, action):
    """A path whose links were resolved before may have new ones."""
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("of the machine")
    before = (outside / "secret").stat()
    (folder / "out").symlink_to(outside)
    (folder / "file").symlink_to(outside / "secret")
    with pytest.raises(FileError):
        action(volume)
    assert (outside / "secret").read_text() == "of the machine"
    assert (outside / "secret").stat().st_mode == before.st_mode
    assert [each.name for each in outside.iterdir()] == ["secret"]


def test_pipe_is_not_opened(files, folder):
    os.mkfifo(folder / "pipe")
    assert [*files.children("/data")] == ["pipe"]
    for action in (files.read, lambda path: files.write(path, b"x")):
        with pytest.raises(FileError, match="No such device or address"):
            action("/data/pipe")


def test_large_file_is_read_when_its_data_are_asked_for(files, folder):
    data = b"x" * (MAX_READ_AT_ONCE + 1)
    (folder / "f").write_bytes(data)
    entry = files.entry("/data/f")
    assert (entry.data, entry.size) == (b"", len(data))
    assert files.read("/data/f") == data
    files.change("/data/f", mode=0o600)
    files.write("/data/f", b"y", append=True)
    assert (folder / "f").read_bytes() == data + b"y"


def test_file_of_a_gigabyte_is_never_in_memory(files, volume, folder):
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 30)
    assert files.entry("/data/huge").size == 1 << 30
    with pytest.raises(FileError, match="File too large"):
        files.read("/data/huge")
    kept, left_out = volume.inodes.entries_with_data(limits.MAX_FILE_BYTES)
    assert (left_out, [*kept]) == (("/huge",), ["/"])
    assert files.rename("/data/huge", "/data/other")
    files.write("/data/other", b"")
    assert (folder / "other").stat().st_size == 0


def test_owner_and_mode_are_kept_where_the_kernel_allows_them_not(volume, folder):
    files = FileSystem(mounts={"/data": Mount(files=volume)}, user=ContainerUser(1234, 1234))
    files.write("/data/f", b"x", mode=0o444)
    files.change("/data/f", mode=0o4400)
    entry = files.entry("/data/f")
    assert (entry.user, entry.group, entry.mode) == (1234, 1234, 0o4400)
    # No program of this machine gets the rights of a user because a simulated container wants that.
    assert not (folder / "f").stat().st_mode & 0o6000
    (folder / "f").unlink()
    (folder / "g").write_text("of the process")
    (folder / "g").rename(folder / "f")
    assert files.entry("/data/f").mode & 0o7000 == 0


def test_volume_of_a_claim_has_its_size(files, volume, folder):
    volume.inodes.quota.capacity = 1000
    (folder / "f").write_bytes(bytes(900))
    assert files.place("/data/f").files.inodes.free() == 100
    with pytest.raises(NoSpace):
        files.write("/data/g", bytes(101))
    files.write("/data/g", bytes(100))


def test_kept_contents_replace_all_files(volume, folder):
    (folder / "d").mkdir()
    (folder / "d/f").write_text("old")
    volume.inodes.replace_contents({"/": FileEntry(mode=0o777), "/n": FileEntry(data=b"new")})
    assert [each.name for each in folder.iterdir()] == ["n"]


def test_folder_that_was_removed_has_no_files(files, folder):
    folder.rmdir()
    assert not files.exists("/data/f")
    with pytest.raises(FileError):
        files.write("/data/f", b"x")


def test_hole_of_a_process_takes_no_space_and_zeros_of_a_simulated_container_do(files, volume, folder):
    with (folder / "database").open("wb") as file:
        file.truncate(1 << 30)
    assert volume.inodes.used < 1 << 20
    files.write("/data/zeros", b"", zeros=1 << 30)
    assert (1 << 30) <= volume.inodes.used < (1 << 30) + (1 << 20)
    files.rename("/data/zeros", "/data/moved")
    assert volume.inodes.used >= 1 << 30
    files.remove("/data/moved")
    assert volume.inodes.used < 1 << 20
