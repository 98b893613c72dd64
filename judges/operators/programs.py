"""Gets an operator: its sources and its program, from a Go module or from a folder of the user."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import orjson
from msgspec import Struct

from judges.suites.sources import SourceMissing
from tools.needed import require_programs

PROGRAM = "program"
SOURCE = "source"


class OperatorProgram(Struct, frozen=True, kw_only=True):
    """An operator that is explored: where its program comes from, and how it is run."""

    name: str
    version: str
    command: Sequence[str] = ()
    module: str = ""
    repository: str = ""
    package: str = "."
    build: str = ""
    """How the sources in a folder of the user become its `program`: a line of a shell in that folder."""
    files: Sequence[str] = ()
    """Further files of its scenarios."""
    explore: Sequence[str] = ()
    """More flags of `mockube explore`."""


def prepare(operator: OperatorProgram, given: Path | None, target: Path) -> Path:
    """Return a folder with the operator's `source` and `program`; a module is built once."""
    target.mkdir(parents=True, exist_ok=True)
    if operator.module:
        if not (target / PROGRAM).exists():
            _build(operator, target)
        return target
    folder = None if given is None else given / operator.name
    if folder is not None and folder.is_dir() and operator.build and not (folder / PROGRAM).exists():
        _run(["sh", "-c", operator.build], folder)
    if folder is None or not (folder / PROGRAM).is_file():
        raise SourceMissing(
            f"no Go module has {operator.repository} at {operator.version[:12]}: build it, "
            f"and set OPERATORS=DIR with its sources and the program as DIR/{operator.name}/{PROGRAM}"
        )
    _link(target / SOURCE, folder)
    _link(target / PROGRAM, folder / PROGRAM)
    return target


def _build(operator: OperatorProgram, target: Path) -> None:
    """Build a module in a copy that may be changed: its list of dependencies may be incomplete for a newer Go."""
    module = f"{operator.module}@{operator.version}"
    source = target / SOURCE
    if not source.exists():
        shutil.copytree(orjson.loads(_go(target, "mod", "download", "-json", module))["Dir"], source)
        for path in (source, *source.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
    _go(source, "build", "-mod=mod", "-o", str(target.absolute() / PROGRAM), operator.package)


def _link(link: Path, to: Path) -> None:
    link.unlink(missing_ok=True)
    link.symlink_to(to.absolute())


def _go(folder: Path, *words: str) -> str:
    require_programs("go")
    return _run(["go", *words], folder)


def _run(command: Sequence[str], folder: Path) -> str:
    finished = subprocess.run(
        command,
        cwd=folder,
        env={"GOFLAGS": "-buildvcs=false", **os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise SourceMissing(f"{' '.join(command)}: {finished.stderr.strip() or finished.stdout.strip()}")
    return finished.stdout
