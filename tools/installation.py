"""Measure how large an installation is, and how long it takes: `make sizes`. The exit code is 1 if one is larger than its limit.

Sizes are sums of the sizes of files, in MiB (2^20 bytes), as `du -m --apparent-size` counts. Times depend on the machine and on the installer's cache, so they have no limit.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.packages import ROOT, build_package

MEBIBYTE: Final = 1 << 20
CLUSTER: Final = "sizes"
UNUSUAL: Final = frozenset(
    {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON", "PYTHONDONTWRITEBYTECODE", "VENV", "VIRTUAL_ENV"}
)
"""Variables that a user does not have: those of `make`, of its targets, and of an activated environment."""


class Measurement(NamedTuple):
    subject: str
    size: int
    limit: int
    """In MiB."""
    seconds: float | None = None

    @property
    def is_too_large(self) -> bool:
        return self.size > self.limit * MEBIBYTE

    def row(self) -> Sequence[str]:
        time_taken = "" if self.seconds is None else f"{self.seconds:.1f} s"
        return self.subject, f"{self.size / MEBIBYTE:.1f} MiB", f"{self.limit} MiB", time_taken


def size_of(*folders: Path) -> int:
    """Return the size of all files; one with several names counts once."""
    sizes = {}
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                status = path.stat()
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def timed(action: Callable[[], None]) -> float:
    begin = time.monotonic()
    action()
    return time.monotonic() - begin


def run(*command: str | Path, folder: Path = ROOT, **changes: str) -> None:
    """Run a command as a user would, whose Python writes bytecode."""
    environment = {key: value for key, value in os.environ.items() if key not in UNUSUAL} | changes
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def locked_versions() -> str:
    """Return the lines of the lock without hashes, as constraints: pip would require hashes of the wheel, too."""
    lines = (ROOT / "requirements/run.txt").read_text().splitlines()
    return "".join(line.rstrip("\\") + "\n" for line in lines if not line.startswith(" "))


def measure_wheel(wheel: Path) -> Measurement:
    return Measurement("wheel", wheel.stat().st_size, limit=6)


def measure_pip(wheel: Path, folder: Path) -> Measurement:
    """Measure the packages that pip installs for the wheel, with their bytecode, without pip itself.

    They are those of the lock, so that a new release of one changes no size.
    """
    environment = folder / "pip"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    versions = folder / "versions.txt"
    versions.write_text(locked_versions())
    pip = (_base_python(), "-m", "pip", "--python", environment / "bin/python", "install", "--quiet")
    seconds = timed(lambda: run(*pip, "--disable-pip-version-check", "--constraint", versions, wheel))
    return Measurement("pip install of the wheel", size_of(environment), limit=86, seconds=seconds)


def measure_uv(wheel: Path, folder: Path) -> Measurement:
    environment = folder / "uv"
    run("uv", "venv", "--quiet", "--python", sys.executable, environment)
    seconds = timed(lambda: run("uv", "pip", "install", "--quiet", "--python", environment, wheel))
    return Measurement("uv pip install of the wheel", size_of(environment), limit=86, seconds=seconds)


def measure_make_up(folder: Path) -> Measurement:
    """Measure what `make up` adds to a new clone until the cluster is ready."""
    clone, variables = folder / "clone", {"XDG_DATA_HOME": str(folder / "home")}
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
    before = size_of(clone)
    try:
        seconds = timed(
            lambda: run("make", "up", f"ARGS=--detach --name={CLUSTER}", folder=clone, **variables)
        )
    finally:
        if (clone / ".venv/bin/mockube").exists():
            run(clone / ".venv/bin/mockube", "down", f"--name={CLUSTER}", **variables)
    installer = "uv" if shutil.which("uv", path=os.environ["PATH"]) else "pip"
    return Measurement(
        f"make up on a new clone, with {installer}", size_of(clone) - before, limit=90, seconds=seconds
    )


def _base_python() -> str:
    """Return the interpreter that this virtual environment is made of, which has a pip."""
    return os.path.realpath(sys.executable)


def measurements(folder: Path) -> Iterator[Measurement]:
    wheel = build_package("wheel", folder)
    yield measure_wheel(wheel)
    yield measure_pip(wheel, folder)
    if shutil.which("uv"):
        yield measure_uv(wheel, folder)
    yield measure_make_up(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = [*measurements(Path(folder))]
    rows = [("", "size", "limit", "took"), *(measurement.row() for measurement in found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if too_large := [measurement.subject for measurement in found if measurement.is_too_large]:
        raise SystemExit(f"larger than its limit: {', '.join(too_large)}")


if __name__ == "__main__":
    main()
