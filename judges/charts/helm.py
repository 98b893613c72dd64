"""Runs helm, which is on PATH or built from its Go modules, and starts the clusters that it installs charts in."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from judges.clusters import running_cluster
from tests.support.processes import go_programs
from tests.support.processes.helm_binary import MODULE, PACKAGE
from tests.support.processes.process import ROOT

BUILT = ROOT / "build/charts/helm"
_SLACK_SECONDS = 60
"""The seconds after which a helm that does not respect its own timeout is killed."""


class Outcome(NamedTuple):
    """The result of a helm command."""

    succeeded: bool
    seconds: float
    output: str = ""

    @property
    def message(self) -> str:
        """The last line of the output, in which helm names its error."""
        return self.output.rpartition("\n")[2]


class Cluster:
    """A cluster and the helm that uses it."""

    def __init__(self, helm: Path, kubeconfig: Path, folder: Path) -> None:
        self._helm = helm
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
        }

    def helm(self, *arguments: str, timeout: int) -> Outcome:
        """Run a helm command that waits; `timeout` is its own limit in seconds."""
        begun = time.monotonic()
        command = [self._helm, *arguments, f"--timeout={timeout}s"]
        try:
            finished = self._run(command, timeout + _SLACK_SECONDS)
        except subprocess.TimeoutExpired:
            return Outcome(succeeded=False, seconds=time.monotonic() - begun, output="helm does not end")
        return Outcome(
            succeeded=finished.returncode == 0,
            seconds=time.monotonic() - begun,
            output=f"{finished.stdout.strip()}\n{finished.stderr.strip()}".strip(),
        )

    def items(self, resources: str, namespace: str) -> list[dict]:
        """Return the objects of some resources in a namespace."""
        command = ["kubectl", "get", resources, f"--namespace={namespace}", "--output=json"]
        finished = self._run(command, _SLACK_SECONDS)
        return orjson.loads(finished.stdout)["items"] if finished.returncode == 0 else []

    def _run(self, command: Sequence[str | Path], seconds: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=self._environment, capture_output=True, text=True, check=False, timeout=seconds
        )


def find_helm() -> Path:
    """Return the path of helm, which is built where there is none."""
    found = shutil.which("helm")
    if found:
        return Path(found)
    if not BUILT.exists():
        BUILT.parent.mkdir(parents=True, exist_ok=True)
        print("charts: building helm", flush=True)
        go_programs.build(MODULE, BUILT, PACKAGE)
    return BUILT


@contextlib.contextmanager
def cluster(helm: Path, flags: Sequence[str] = ()) -> Iterator[Cluster]:
    """Start a cluster, and return it with helm."""
    with running_cluster(("--profile=minimal", *flags)) as (kubeconfig, folder):
        yield Cluster(helm, kubeconfig, folder)
