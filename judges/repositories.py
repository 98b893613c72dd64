"""Finds a public repository: a folder with a checkout or with a git directory, or a shallow clone of the repository.

    judges.repositories.checkout("gke-labs/k8s-ai-bench", ["tasks"], source, target)

Nothing of these repositories is a part of ours: each run copies what it needs into a temporary folder.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from judges.suites.sources import SERVER_OF_CODE, SourceMissing


def checkout(repository: str, paths: Sequence[str], source: Path | None, target: Path) -> Path:
    """Copy paths of a repository into a folder. `source` has the repository's folder, by its name or as OWNER+NAME."""
    found = None if source is None else _find(repository, source)
    if found is None:
        url = f"{SERVER_OF_CODE}/{repository}"
        clone = target.with_name(f"{target.name}.git")
        _run("git", "clone", "--depth=1", "--bare", url, str(clone))
        found = clone
    if (found / "objects").is_dir():
        _extract(found, paths, target)
        return target
    for path in paths:
        shutil.copytree(found / path, target / path, symlinks=True)
    return target


def _find(repository: str, source: Path) -> Path | None:
    owner, _, name = repository.partition("/")
    folders = (source / name, source / f"{owner}+{name}", source / f"{owner}+{name}" / "repo")
    return next((folder for folder in reversed(folders) if folder.is_dir()), None)


def _extract(git: Path, paths: Sequence[str], target: Path) -> None:
    """Write the files below some paths of a git directory; one whose object is absent, as in a partial mirror, is left out."""
    listing = _run("git", "-C", str(git), "ls-tree", "-r", "-z", "HEAD", "--", *paths)
    entries = [entry.split("\t", 1) for entry in listing.split("\0") if entry]
    with subprocess.Popen(
        ["git", "-C", git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        for attributes, path in entries:
            mode, kind, object_id = attributes.split()
            if kind != "blob":
                continue
            reader.stdin.write(f"{object_id}\n".encode())
            reader.stdin.flush()
            head = reader.stdout.readline().split()
            if head[1] == b"missing":
                continue
            data = reader.stdout.read(int(head[2]))
            reader.stdout.read(1)
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if mode == "120000":
                file.symlink_to(data.decode())
            else:
                file.write_bytes(data)
                file.chmod(0o755 if mode == "100755" else 0o644)


def _run(*command: str) -> str:
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SourceMissing(f"{' '.join(command)}: {finished.stderr.strip() or finished.stdout.strip()}")
    return finished.stdout
