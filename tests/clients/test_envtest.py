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


@pytest.fixture(scope="module", params=["go.mod", pytest.param("oldest.mod", marks=pytest.mark.release)])
def suite_with_controllers(request, tmp_path_factory):
    """A suite with the newest and the oldest version of controller-runtime that the guide names."""
    target = tmp_path_factory.mktemp("controllers") / "suite"
    return go_programs.build(SUITE.parent, target, "./controllers", module=request.param)


STEPS = ["start", "users", "webhook", "deployment", "namespace", "stop"]


def run_suite(command, **environment):
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ok ")]


@pytest.mark.parametrize(
    ("flags", "rounds"),
    [
        (["-rounds=2"], 2),
        (["-delay=30ms"], 1),
        (["authorization-mode=Node,RBAC", "disable-admission-plugins=DefaultStorageClass"], 1),
    ],
    ids=["started twice", "as slow as with -race", "other flags"],
)
def test_suite_has_ready_pods_with_controllers(suite_with_controllers, tmp_path, flags, rounds):
    command = [sys.executable, "-P", "-m", "mockube", "envtest", "--with-controllers", tmp_path / "assets"]
    subprocess.run(command, check=True, capture_output=True)
    assets = str(tmp_path / "assets")
    assert run_suite([suite_with_controllers, *flags], KUBEBUILDER_ASSETS=assets) == STEPS * rounds


def test_suite_uses_existing_cluster(suite_with_controllers):
    command = [sys.executable, "-P", "-m", "mockube", "run", "--", suite_with_controllers]
    steps = run_suite(command, USE_EXISTING_CLUSTER="true")
    assert steps == [step for step in STEPS if step != "users"]
