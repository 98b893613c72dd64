"""A directory that other users can write to is refused with advice; links in it are not followed."""

import os
import stat
from pathlib import Path

import pytest

from mockube.apiserver.config.settings import StorageOptions
from mockube.apiserver.store import open_store
from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.directory import take_directory
from mockube.etcd.embedded.disk import Disk, File, NewFile
from mockube.etcd.embedded.lock import check_private, open_lock, problem_of
from mockube.etcd.errors import Unavailable, UnsafeDirectory

FOLDER = Path("/data")
US, OUR_GROUP = 1000, 1000


def directory_stat(mode, *, uid=US, gid=OUR_GROUP):
    return os.stat_result((stat.S_IFDIR | mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("held", "says"),
    [
        pytest.param(directory_stat(0o700), "", id="ours alone"),
        pytest.param(directory_stat(0o755), "", id="world-readable"),
        pytest.param(directory_stat(0o775), "", id="writable by own group"),
        pytest.param(
            directory_stat(0o775, gid=7),
            "group 7, which is not that of this process",
            id="writable by another group",
        ),
        pytest.param(directory_stat(0o755, gid=7), "", id="readable by another group"),
        pytest.param(directory_stat(0o777), "by every user: `chmod go-w /data`", id="world-writable"),
        pytest.param(directory_stat(0o1777), "by every user", id="world-writable with sticky bit"),
        pytest.param(
            directory_stat(0o700, uid=0),
            "belongs to user 0, and this process runs as user 1000",
            id="of root",
        ),
        pytest.param(
            directory_stat(0o700, uid=7), "run it as user 7, `chown 1000` the directory", id="of another user"
        ),
    ],
)
def test_directory_writable_by_others_is_reported(held, says):
    problem = problem_of(FOLDER, held, uid=US, gid=OUR_GROUP)
    assert says in problem
    assert bool(says) == bool(problem)


def test_private_directory_is_accepted(tmp_path):
    check_private(tmp_path)


@pytest.mark.parametrize("which", ["data", "data/etcd"])
async def test_store_does_not_open_in_directory_writable_by_others(tmp_path, which):
    (tmp_path / "data" / "etcd").mkdir(parents=True)
    (tmp_path / which).chmod(0o777)
    with pytest.raises(UnsafeDirectory, match="name another directory"):
        async with open_store(StorageOptions(data_dir=tmp_path / "data", fsync=False), SteppedClock()):
            pytest.fail("it was used")
    assert [*(tmp_path / "data" / "etcd").iterdir()] == []


@pytest.mark.parametrize("make", ["symlink_to", "fifo", "directory"])
def test_lock_must_be_a_regular_file(tmp_path, make):
    target, lock = tmp_path / "precious", tmp_path / "LOCK"
    target.write_text("kept")
    match make:
        case "symlink_to":
            lock.symlink_to(target)
        case "fifo":
            os.mkfifo(lock)
        case "directory":
            lock.mkdir()
    with pytest.raises(OSError, match=r"LOCK|symbolic links"):
        open_lock(lock)
    assert target.read_text() == "kept"


def test_lock_that_is_a_link_is_not_followed(tmp_path):
    target = tmp_path / "precious"
    target.write_text("kept")
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "LOCK").symlink_to(target)
    with pytest.raises(Exception, match="LOCK"):
        take_directory(folder)
    assert target.read_text() == "kept"


def test_file_of_store_that_is_a_link_is_not_opened(tmp_path):
    target = tmp_path / "theirs"
    target.write_text("theirs")
    (tmp_path / "1.log").symlink_to(target)
    with pytest.raises(Unavailable, match="symbolic links"):
        File(Disk(), tmp_path / "1.log")
    assert target.read_text() == "theirs"


@pytest.mark.parametrize("make", [Path.symlink_to, Path.hardlink_to])
def test_temporary_file_does_not_follow_planted_link(tmp_path, make):
    """Another user could plant a link to read what is written, or to redirect it."""
    target = tmp_path / "theirs"
    target.write_text("theirs")
    make(tmp_path / "a.gz.tmp", target)
    file = NewFile(Disk(), tmp_path / "a.gz")
    file.write(b"secret", 0)
    file.publish()
    file.close()
    assert target.read_text() == "theirs"
    assert (tmp_path / "a.gz").read_bytes() == b"secret"
    assert stat.S_IMODE((tmp_path / "a.gz").stat().st_mode) == 0o600
