"""The source tree that is packed: the files that git tracks, as they are in a checkout, or an unpacked source distribution."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

EPOCH_VARIABLE: Final = "SOURCE_DATE_EPOCH"
MAX_LISTED: Final = 5


def commit_time(root: Path) -> int:
    """Return the time of SOURCE_DATE_EPOCH, or that of the commit: the packed files have no other one."""
    text = os.environ.get(EPOCH_VARIABLE, "")
    if text and not text.isdecimal():
        raise SystemExit(f'mockube: {EPOCH_VARIABLE} is "{text}", and must be a number of seconds since 1970')
    if not text and not is_checkout(root):
        raise SystemExit(
            f"mockube: {root} is no checkout of git, so the time of the commit is unknown: "
            f"set {EPOCH_VARIABLE} to a number of seconds since 1970, such as {EPOCH_VARIABLE}=$(date +%s)"
        )
    return int(text or _git(root, "log", "-1", "--format=%ct"))


def is_checkout(root: Path) -> bool:
    """Return whether git tracks the tree: an unpacked source distribution may lie in another checkout."""
    try:
        return Path(_git(root, "rev-parse", "--show-toplevel").strip()).resolve() == root.resolve()
    except (OSError, subprocess.CalledProcessError):
        return False


def changed_files(root: Path) -> tuple[Sequence[str], Sequence[str]]:
    """Return the tracked files that differ from the commit, and the files that git neither tracks nor ignores."""
    entries = [
        entry for entry in _git(root, "status", "--porcelain", "-z", "--no-renames").split("\0") if entry
    ]
    untracked = [entry[3:] for entry in entries if entry.startswith("??")]
    return [entry[3:] for entry in entries if not entry.startswith("??")], untracked


def listed(files: Sequence[str]) -> str:
    more = f" and {len(files) - MAX_LISTED} more" if len(files) > MAX_LISTED else ""
    return ", ".join(files[:MAX_LISTED]) + more


@contextmanager
def tracked_tree(root: Path) -> Iterator[Path]:
    """Provide a copy of the files that git tracks; where there is no git, the tree itself."""
    if not is_checkout(root):
        yield root
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "mockube")
        for name in filter(None, _git(root, "ls-files", "-z").split("\0")):
            source, target = root / name, copy / name
            if source.is_symlink() or source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target, follow_symlinks=False)
        yield copy


def _git(root: Path, *arguments: str) -> str:
    command = ("git", *arguments)
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
