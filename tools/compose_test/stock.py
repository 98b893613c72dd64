"""The files to use without an engine or a registry, from Debian's packages and Python's wheels.

Each part is made once and cached in the folder. Nothing is installed on the machine itself.
"""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.compose_test.commands import SetupFailed, report, run

SUITE = "bookworm"
PYTHON = "3.11"
"""The one that the suite has."""
PROGRAMS = ("docker.io", "docker-compose", "debootstrap")
SERVERS = ("etcd-server", "etcd-client", "haproxy", "prometheus", "wget")
"""The other images of compose.yaml, and their health commands."""
REQUIREMENTS = Path(__file__).parents[2] / "requirements"


class Stock:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.programs = folder / "programs"
        """The packages of an engine, unpacked as if this were the root."""
        self.base = folder / "base"
        """A root file system with Python."""
        self.servers = folder / "servers"
        """The same with etcd, HAProxy and Prometheus."""
        self.wheels = folder / "wheels"
        """`pip`, and the wheels of the images that are built."""

    def fetch(self) -> None:
        """Needs root, and the network."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for path, make in (
            (self.programs, _unpack_programs),
            (self.base, self._bootstrap),
            (self.servers, self._add_servers),
            (self.wheels, _download_wheels),
        ):
            _once(path, make)

    def _bootstrap(self, to: Path) -> None:
        programs = [str(self.programs / "usr" / folder) for folder in ("sbin", "bin")]
        settings = (
            f"PATH={':'.join([os.environ['PATH'], *programs])}",
            f"DEBOOTSTRAP_DIR={self.programs}/usr/share/debootstrap",
        )
        run("env", *settings, "debootstrap", "--variant=minbase", "--include=python3", SUITE, to)

    def _add_servers(self, to: Path) -> None:
        run("cp", "--archive", self.base, to)
        quietly = ("env", "DEBIAN_FRONTEND=noninteractive")
        run("chroot", to, *quietly, "apt-get", "install", "-q", "-y", "--no-install-recommends", *SERVERS)


def _once(path: Path, make: Callable[[Path], None]) -> None:
    """Make the path once; an unfinished one is made again."""
    if path.exists():
        return
    report(f"{path.name}: from Debian's packages and Python's wheels")
    partial_path = path.with_name(f"{path.name}.begun")
    shutil.rmtree(partial_path, ignore_errors=True)
    make(partial_path)
    partial_path.rename(path)


def _unpack_programs(to: Path) -> None:
    """Unpack the packages, and their dependencies that are not installed."""
    packages = to / "packages"
    packages.mkdir(parents=True)
    run("apt-get", "update", "-q")
    plan = run("apt-get", "install", "--simulate", "--no-install-recommends", *PROGRAMS)
    missing = {line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")}
    run("env", "-C", packages, "apt-get", "download", *sorted(missing.union(PROGRAMS)))
    for package in packages.iterdir():
        run("dpkg", "--extract", package, to)
    shutil.rmtree(packages)


def _download_wheels(to: Path) -> None:
    download = (*_pip(), "download", "--quiet", "--dest", to)
    machine = platform.machine()
    for_image = ("--only-binary=:all:", "--no-deps", f"--python-version={PYTHON}")
    platforms = [f"--platform={tag}_{machine}" for tag in ("manylinux_2_28", "manylinux2014")]
    for part in ("build.txt", "run.txt"):
        run(*download, *for_image, *platforms, "--require-hashes", "-r", REQUIREMENTS / part)
    run(*download, "--no-deps", "pip")


def _pip() -> Sequence[str]:
    for command in ((sys.executable, "-m", "pip"), ("pip3",), ("python3", "-m", "pip")):
        try:
            run(*command, "--version")
        except (SetupFailed, FileNotFoundError):
            continue
        return command
    raise SetupFailed("there is no pip to download wheels with")
