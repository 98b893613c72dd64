"""A Docker engine: the running one, or one that this program starts.

The started engine has its own network, mounts and processes: its bridges and rules end with this process.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.compose_test.commands import SetupFailed, report, run
from tools.compose_test.stock import Stock

START_TIMEOUT = 30.0
NEEDED = ("apt-get", "dpkg", "chroot", "unshare", "ip", "kubectl")


def is_running(environment: Mapping[str, str]) -> bool:
    if shutil.which("docker") is None:
        return False
    result = subprocess.run(["docker", "version"], env=environment, capture_output=True, check=False)
    return result.returncode == 0


def check_possible() -> None:
    """Raise SetupFailed if this machine cannot start an engine."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise SetupFailed("no Docker engine answers, and only root on Linux may start one")
    lacking = [program for program in NEEDED if shutil.which(program) is None]
    if lacking:
        raise SetupFailed(f"no Docker engine answers, and to start one there is no {', '.join(lacking)}")


def compose(stock: Stock, environment: Mapping[str, str]) -> str:
    """Return the compose command: the engine's plugin, the older program, or Debian's."""
    for command in ("docker compose", "docker-compose"):
        words = [*command.split(), "version"]
        if (
            shutil.which(words[0])
            and subprocess.run(words, env=environment, capture_output=True, check=False).returncode == 0
        ):
            return command
    program = stock.programs / "usr/bin/docker-compose"
    if not program.exists():
        raise SetupFailed("there is an engine, but no docker compose")
    return f"env PYTHONPATH={stock.programs}/usr/lib/python3/dist-packages /usr/bin/python3 {program}"


@contextmanager
def own(stock: Stock) -> Iterator[dict[str, str]]:
    """Start an engine for a block; yield the environment variables of its clients."""
    run("ip", "link", "set", "lo", "up")
    folder = Path("/run/mockube-engine")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    folder.mkdir()
    environment = _environment(stock.programs, folder)
    state = stock.programs.with_name("engine")
    shutil.rmtree(state, ignore_errors=True)
    command = [
        "dockerd",
        f"--host={environment['DOCKER_HOST']}",
        f"--data-root={state}",
        f"--exec-root={folder}",
    ]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [*command, f"--pidfile={folder}/pid"], env=environment, stdout=log, stderr=log
        )
        try:
            _wait_answering(daemon, environment, folder / "log")
            yield environment
        finally:
            daemon.terminate()
            daemon.wait()
            shutil.rmtree(state, ignore_errors=True)


def _environment(programs: Path, folder: Path) -> dict[str, str]:
    """Return the environment of the engine, whose links select the iptables; the machine's libraries come first."""
    links = folder / "links"
    links.mkdir()
    for name in ("iptables", "ip6tables"):
        if shutil.which(name) is None:
            (links / name).symlink_to(programs / "usr/sbin/xtables-nft-multi")
    (libraries,) = (programs / "usr/lib").glob("*-linux-gnu") or [programs / "usr/lib"]
    return {
        **os.environ,
        "PATH": ":".join(
            [os.environ["PATH"], *map(str, (links, programs / "usr/sbin", programs / "usr/bin"))]
        ),
        "LD_LIBRARY_PATH": str(libraries),
        "XTABLES_LIBDIR": str(libraries / "xtables"),
        "DOCKER_HOST": f"unix://{folder}/docker.sock",
        "DOCKER_BUILDKIT": "0",
    }


def _wait_answering(daemon: subprocess.Popen[bytes], environment: Mapping[str, str], log: Path) -> None:
    report("starting an engine")
    pause = threading.Event()
    for _ in range(int(START_TIMEOUT / 0.2)):
        if daemon.poll() is not None:
            break
        if is_running(environment):
            return
        pause.wait(0.2)
    last = (log.read_text().strip() or "no output").splitlines()[-1]
    raise SetupFailed(f"no Docker engine: dockerd does not start: {last}")
