"""The processes that are measured, and their CPU time and memory, which Linux reports."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

from .client import Client

ROOT = Path(__file__).resolve().parents[2]
TICKS = os.sysconf("SC_CLK_TCK")
SERVER, MANAGER = "server", "manager"
_MODULES = {"mockube.apiserver": SERVER, "mockube.controller_manager": MANAGER}
TIMEOUT = 1_800.0
"""How long a step may take; 100,000 pods on a busy machine are the longest one."""
START_TIMEOUT = 300.0
"""How long a start may take; 20,000 nodes are the longest one."""


class ControlPlane(NamedTuple):
    """A control plane that serves."""

    client: Client
    pids: Mapping[str, int]
    """The processes by their names in the results."""

    def cpu_seconds(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self.pids.items()}

    def total_cpu_seconds(self) -> float:
        return sum(self.cpu_seconds().values())

    def megabytes(self) -> dict[str, float]:
        return {name: megabytes(pid) for name, pid in self.pids.items()}


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, in steps of 10 ms."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS


def megabytes(pid: int) -> float:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return round(int(line.split()[1]) / 1024, 1)


def wait_until(
    condition: Callable[[], bool], what: str, *, pause: float = 0.1, timeout: float = TIMEOUT
) -> float:
    """Return the seconds until the condition holds."""
    started = time.perf_counter()
    while not condition():
        if time.perf_counter() - started > timeout:
            raise TimeoutError(f"{what} took more than {timeout:.0f} s")
        time.sleep(pause)
    return time.perf_counter() - started


@contextmanager
def running(*arguments: str | Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the block ends; its output is the file `log` of the folder."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(arguments, cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def require_running(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.poll() is not None:
        raise SystemExit(f"{process.args!r} ended:\n{(folder / 'log').read_text()}")


@contextmanager
def mockube_up(nodes: int | str, folder: Path, *flags: str) -> Iterator[ControlPlane]:
    """Run `mockube up` with no pods of its own; yield when the server responds, which is before the nodes are ready."""
    kubeconfig = folder / "kubeconfig"
    command = (
        sys.executable, "-m", "mockube", "up", "--name=growth", f"--nodes={nodes}", "--profile=minimal", "--secure-port=0",
        "--wait=server", f"--write-kubeconfig={kubeconfig}", *flags,
    )  # fmt: skip
    with running(*command, folder=folder) as process:

        def has_started() -> bool:
            require_running(process, folder)
            return kubeconfig.exists() and len(_children(process.pid)) == len(_MODULES)

        wait_until(has_started, "the start", timeout=START_TIMEOUT)
        config = yaml.safe_load(kubeconfig.read_text())
        client = Client(config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"])
        wait_until(client.is_ready, "the start", timeout=START_TIMEOUT)
        yield ControlPlane(client, _children(process.pid))


def _children(parent: int) -> dict[str, int]:
    """Return server and manager among the processes that a process has started."""
    found: dict[str, int] = {}
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        arguments = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        found |= {name: int(pid) for module, name in _MODULES.items() if module in arguments}
    return found
