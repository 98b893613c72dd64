"""`make tasks`: its list of tasks, and how a task is run. No cluster is started."""

import re

import pytest

from judges.repositories import checkout
from judges.tasks.__main__ import read_sets
from judges.tasks.runner import STEPS, Task, run_task


def test_listed_tasks_have_valid_patterns_and_reasons():
    for name, settings in read_sets().items():
        assert settings["form"] in ("scripts", "fixtures", "injections"), name
        for task, listed in settings["tasks"].items():
            fields = listed or {}
            assert fields.keys() <= {"shows", "solution", "inject", "nodes", "fails"}, task
            assert ("inject" in fields) == (settings["form"] == "injections"), task
            for pattern in (fields.get("shows") or {}).values():
                re.compile(pattern)
            assert set(fields.get("fails") or {}) <= set(STEPS), task
            assert all(fields.get("fails", {}).values()), task
        assert not settings["tasks"].keys() & (settings.get("skip") or {}).keys()


@pytest.fixture
def kubectl(tmp_path, monkeypatch):
    """A kubectl that prints the file `state` of the task's folder."""
    program = tmp_path / "bin/kubectl"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat state\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def results(outcomes):
    return {step: outcome.succeeded for step, outcome in outcomes.items()}


def test_scripts_of_task_run_in_order(tmp_path, kubectl):
    for name, text in {
        "setup": "echo broken > state",
        "verify": "grep whole state",
        "cleanup": "echo gone > state",
    }.items():
        (tmp_path / f"{name}.sh").write_text(text)
    task = Task(name="t", folder=tmp_path, shows={"get": "^brok"}, solution="echo whole > state")
    assert results(run_task(task, "scripts", tmp_path / "kubeconfig")) == dict.fromkeys(STEPS, True)
    assert (tmp_path / "state").read_text() == "gone\n"


def test_check_that_succeeds_with_nothing_done_fails(tmp_path, kubectl):
    for name in ("setup", "verify"):
        (tmp_path / f"{name}.sh").write_text("true")
    outcomes = run_task(Task(name="t", folder=tmp_path), "scripts", tmp_path / "kubeconfig")
    assert results(outcomes) == {"setup": True, "idle": False}


def test_solution_that_fails_is_reported(tmp_path, kubectl):
    for name in ("setup", "verify"):
        (tmp_path / f"{name}.sh").write_text("true")
    task = Task(name="t", folder=tmp_path, solution="echo no; false; true")
    assert run_task(task, "scripts", tmp_path / "kubeconfig")["solved"].output == "no\n"


def test_fixture_has_its_commands_in_a_file(tmp_path, kubectl):
    (tmp_path / "test_case.yaml").write_text(
        "before_test: echo on > state\nafter_test: rm state\nexpected_output: x\n"
    )
    outcomes = run_task(Task(name="t", folder=tmp_path, shows={"get": "on"}), "fixtures", tmp_path / "k")
    assert results(outcomes) == {"setup": True, "shows": True}
    assert not (tmp_path / "state").exists()


def test_repository_of_a_folder_is_copied_without_its_other_paths(tmp_path):
    for path in ("tasks/a/setup.sh", "other/b"):
        file = tmp_path / "source/OWNER+NAME" / path
        file.parent.mkdir(parents=True)
        file.write_text("x")
    checkout("OWNER/NAME", ["tasks"], tmp_path / "source", tmp_path / "target")
    assert [path.name for path in (tmp_path / "target").rglob("*")] == ["tasks", "a", "setup.sh"]


def test_fault_is_injected_into_deployed_application(tmp_path, kubectl):
    task = Task(
        name="missing_map", folder=tmp_path, inject="echo $NAMESPACE >> state", shows={"get": "missing-map"}
    )
    outcomes = run_task(task, "injections", tmp_path / "kubeconfig", "echo deployed > state")
    assert results(outcomes) == {"setup": True, "shows": True}
    assert (tmp_path / "state").read_text() == "deployed\nmissing-map\n"
