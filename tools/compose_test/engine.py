"""A Docker engine: the one that is there, or one of our own.

Our own runs where this process has the network, the mounts and the processes to itself: it may set up bridges and
rules as it likes, and all of it ends with this process.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.compose_test.stock import Stock
from tools.compose_test.words import Impossible, report, run

START_TIMEOUT = 30.0
NEEDED = ("apt-get", "dpkg", "chroot", "unshare", "ip", "kubectl")


def answers(environment: Mapping[str, str]) -> bool:
    if shutil.which("docker") is None:
        return False
    result = subprocess.run(["docker", "version"], env=environment, capture_output=True, check=False)
    return result.returncode == 0


def check_possible() -> None:
    """Raise Impossible where an engine of our own cannot even be tried."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Impossible("no Docker engine answers, and only root on Linux may start one")
    lacking = [program for program in NEEDED if shutil.which(program) is None]
    if lacking:
        raise Impossible(f"no Docker engine answers, and to start one there is no {', '.join(lacking)}")


def compose(stock: Stock, environment: Mapping[str, str]) -> str:
    """The command: the engine's own, the older one, or Debian's."""
    for command in ("docker compose", "docker-compose"):
        words = [*command.split(), "version"]
        if (
            shutil.which(words[0])
            and subprocess.run(words, env=environment, capture_output=True, check=False).returncode == 0
        ):
            return command
    program = stock.programs / "usr/bin/docker-compose"
    if not program.exists():
        raise Impossible("there is an engine, but no docker compose")
    return f"env PYTHONPATH={stock.programs}/usr/lib/python3/dist-packages /usr/bin/python3 {program}"


@contextmanager
def own(stock: Stock) -> Iterator[dict[str, str]]:
    """An engine for a block; answers with the environment in which it is found."""
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
    """Debian chooses by a link which iptables is used; the machine's own libraries come first."""
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
    report("an engine of our own")
    pause = threading.Event()
    for _ in range(int(START_TIMEOUT / 0.2)):
        if daemon.poll() is not None:
            break
        if answers(environment):
            return
        pause.wait(0.2)
    last = (log.read_text().strip() or "no output").splitlines()[-1]
    raise Impossible(f"no Docker engine: dockerd does not start: {last}")
