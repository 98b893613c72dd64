"""The checks of `mockube doctor`."""

import os

import pytest

from mockube.checkup import CHECKS, CheckResult, run_checks
from mockube.clusters.named_cluster import cluster_folder, write_record
from mockube.component_base.clock import SteppedClock
from mockube.kubectl import INSTALL_COMMANDS
from tests.support.processes.clusters import starting


@pytest.fixture
def environment(tmp_path):
    return {"XDG_DATA_HOME": str(tmp_path)}


def problem_of(name, environment, clock=None):
    return CHECKS[name](environment, clock or SteppedClock())


def test_checkup_reports_every_check_with_text(environment):
    results = dict(run_checks(environment, SteppedClock()))
    assert results.keys() == CHECKS.keys()
    assert all(one.message for one in results.values())


def test_folder_that_can_be_created_is_ok(environment):
    assert problem_of("clusters' folder", environment).verdict is CheckResult.OK


def test_file_in_place_of_folder_is_reported(tmp_path):
    (tmp_path / "file").touch()
    finding = problem_of("clusters' folder", {"XDG_DATA_HOME": str(tmp_path / "file")})
    assert finding.verdict is CheckResult.WRONG
    assert f"{tmp_path / 'file'} is a file" in finding.message


def test_killed_cluster_is_reported_with_advice(environment):
    assert problem_of("clusters", environment).verdict is CheckResult.OK
    folder = cluster_folder("one", environment)
    folder.prepare()
    write_record(folder, starting())
    finding = problem_of("clusters", environment)
    assert finding.verdict is CheckResult.WRONG
    assert "`mockube down --name=one`" in finding.message


def test_unreadable_cluster_is_reported(environment):
    folder = cluster_folder("one", environment)
    folder.prepare()
    folder.record.mkdir()
    results = dict(run_checks(environment, SteppedClock()))
    assert results["clusters"].verdict is CheckResult.WRONG
    assert results["clusters"].message == f"{folder.record}: Is a directory"
    assert results["Python"].verdict is CheckResult.OK


def test_clock_set_back_is_reported(environment):
    folder = cluster_folder("one", environment)
    folder.prepare()
    (folder.pki / "ca.crt").touch()
    early = SteppedClock()
    assert problem_of("clock", environment, early).verdict is CheckResult.OK
    os.utime(folder.pki / "ca.crt", (early.now().timestamp() + 60,) * 2)
    assert "created in the future" in problem_of("clock", environment, early).message


def test_missing_kubectl_is_a_note(environment, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = problem_of("kubectl", environment)
    assert finding.verdict is CheckResult.NOTE
    assert all(f"`{command}`" in finding.message for command in INSTALL_COMMANDS.values())


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        ("Client Version: v1.36.1", CheckResult.OK),
        ("Client Version: v1.20.0", CheckResult.NOTE),
        ("no idea", CheckResult.WRONG),
    ],
)
def test_kubectl_version_is_reported(environment, tmp_path, monkeypatch, says, verdict):
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\necho {says}\n")
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert problem_of("kubectl", environment).verdict is verdict


def test_available_address_is_ok(environment):
    assert problem_of("address", environment).verdict is CheckResult.OK
