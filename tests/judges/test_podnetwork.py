"""Servers of a real cluster in pods with networks of their own; `make podnetwork` runs them, too."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pod_network import missing
from tests.support.processes.process import ROOT

POSTGRESQL = Path("/usr/lib/postgresql")


@pytest.mark.release
@pytest.mark.skipif(shutil.which("go") is None, reason="they are built from their sources, with Go")
@pytest.mark.parametrize(
    "judge",
    [
        "coredns",
        pytest.param(
            "cloudnative-pg",
            marks=pytest.mark.skipif(
                os.geteuid() != 0 or not POSTGRESQL.exists(), reason="it needs root and Debian's postgresql"
            ),
        ),
    ],
)
def test_server_of_a_real_cluster_works_in_pods(judge):
    if lack := missing():
        pytest.skip(f"no network namespaces for pods: {lack}")
    command = [sys.executable, "-m", "judges.podnetwork", "--only", judge]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
