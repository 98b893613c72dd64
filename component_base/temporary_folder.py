"""A temporary folder that only the process that made it removes, or one that finds that this process was killed."""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end of the block.

    A `TemporaryDirectory` is also removed when a process that was forked during the block exits.
    """
    folder, lock = _new_folder(prefix)
    owner = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned_folders(prefix: str) -> None:
    """Remove the temporary folders with this prefix whose processes were killed: nobody holds their locks."""
    for path in Path(tempfile.gettempdir()).iterdir():
        lock = _locked(path) if path.name.startswith(prefix) else None
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _new_folder(prefix: str) -> tuple[Path, int]:
    """Return a new folder and the descriptor of its lock, which the kernel releases when the process ends."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix))
        lock = _locked(path)
        if lock is not None:
            return path, lock
        # Another process took it for an abandoned one before it was locked.


def _locked(path: Path) -> int | None:
    """Lock a folder of this user; return None if it is none, or gone, or locked."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found, present = os.fstat(lock), path.lstat()
    except OSError:
        os.close(lock)
        return None
    is_own = stat.S_ISDIR(present.st_mode) and present.st_uid == os.geteuid()
    if is_own and (found.st_dev, found.st_ino) == (present.st_dev, present.st_ino):
        return lock
    os.close(lock)
    return None
