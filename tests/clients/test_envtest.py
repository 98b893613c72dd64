"""A suite on controller-runtime's envtest runs with the launchers of `mockube envtest` as binaries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import go_programs

pytestmark = pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)

SUITE = Path(__file__).parent / "go" / "envtest"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    return go_programs.build(SUITE.parent, tmp_path_factory.mktemp("envtest") / "suite", "./envtest")


@pytest.mark.parametrize(
    "flags", [(), ("--with-controllers", "--nodes=0")], ids=["alone", "with-controllers"]
)
def test_operator_with_all_webhook_kinds_runs_unmodified(suite, tmp_path, flags):
    command = [sys.executable, "-P", "-m", "mockube", "envtest", *flags, tmp_path / "assets"]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run(
        [suite, SUITE / "crds.yaml", SUITE / "webhooks.yaml"],
        env=os.environ | {"KUBEBUILDER_ASSETS": str(tmp_path / "assets")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    steps = [line.split()[1] for line in done.stdout.splitlines()]
    assert steps == ["start", "convert", "default", "validate", "reconcile"]
