"""Finds the sources of a public suite: a checkout in a folder, a Go module, or a clone of its repository."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from tools.needed import require_programs

SERVER_OF_CODE = "https://github.com"


class SourceMissing(Exception):
    """The sources of a suite cannot be downloaded."""


class Suite(NamedTuple):
    name: str
    version: str
    server: str
    module: str = ""
    repository: str = ""
    folder: str = "."
    packages: Sequence[str] = ()
    args: Sequence[str] = ()
    command: Sequence[str] = ()
    skip: Mapping[str, str] = {}
    failures: Mapping[str, str] = {}


def working_copy(suite: Suite, checkouts: Path | None, target: Path) -> Path:
    """Return a folder with the suite that it may write into: checkouts and modules stay as they are."""
    if not target.exists():
        checkout = None if checkouts is None else checkouts / suite.name
        if checkout is not None and checkout.is_dir():
            shutil.copytree(checkout, target, symlinks=True)
        elif suite.module:
            shutil.copytree(_module(suite), target)
            for path in (target, *target.rglob("*")):
                path.chmod(path.stat().st_mode | 0o200)
        else:
            _run(
                "git", "clone", "--depth=1", f"--branch={suite.version}",
                f"{SERVER_OF_CODE}/{suite.repository}", str(target),
            )  # fmt: skip
    return target / suite.folder


def _module(suite: Suite) -> Path:
    found = _run("go", "mod", "download", "-json", f"{suite.module}@{suite.version}")
    return Path(orjson.loads(found)["Dir"])


def _run(*command: str) -> str:
    require_programs(command[0])
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SourceMissing(f"{' '.join(command)}: {finished.stderr.strip() or finished.stdout.strip()}")
    return finished.stdout
