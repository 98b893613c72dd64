"""The action for GitHub and the template for GitLab: their shell steps give a later step a cluster."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.processes.empty_environment import INSTALL_SECONDS, empty_environment, run
from tests.support.processes.process import ROOT

pytestmark = pytest.mark.timeout(2 * INSTALL_SECONDS + 60)

ACTION = ROOT / "deploy/action"
GITLAB = ROOT / "deploy/gitlab/mockube.gitlab-ci.yml"
INPUT = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")


class Runner:
    """The part of GitHub's runner that composite actions use: steps with variables, and the files that they write."""

    def __init__(self, folder, environment):
        self.folder = folder
        self.files = {name: folder / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH")}
        for path in self.files.values():
            path.touch()
        self.variables = {
            **environment,
            "RUNNER_TEMP": str(folder),
            **{name: str(path) for name, path in self.files.items()},
        }

    def use(self, folder, **inputs):
        """Run all steps of an action; return their output."""
        action = yaml.safe_load((folder / "action.yml").read_text())
        values = {name: row["default"] for name, row in action.get("inputs", {}).items()} | inputs
        return "".join(self._run(step, folder, values) for step in action["runs"]["steps"])

    def _run(self, step, folder, values):
        environment = {
            name: INPUT.sub(lambda m: values[m[1]], text) for name, text in step.get("env", {}).items()
        }
        path = os.pathsep.join([*reversed(self.lines("GITHUB_PATH")), self.variables["PATH"]])
        exported = dict(line.split("=", 1) for line in self.lines("GITHUB_ENV"))
        variables = {
            **self.variables,
            **exported,
            "PATH": path,
            "GITHUB_ACTION_PATH": str(folder),
            **environment,
        }
        return run("bash", "-e", "-o", "pipefail", "-c", step["run"], env=variables, cwd=self.folder)

    def lines(self, name):
        return self.files[name].read_text().splitlines()


@pytest.fixture
def runner(tmp_path):
    """uv is on the machine, as the action uses it where it is."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    environment = empty_environment(tmp_path)
    environment |= {"PATH": f"{bin_folder}{os.pathsep}{environment['PATH']}", "UV_PYTHON": sys.executable}
    yield Runner(tmp_path, environment)
    if (tmp_path / "mockube").exists():
        run(tmp_path / "mockube/bin/mockube", "down", "--name=ci", env=environment, cwd=tmp_path)


def test_action_starts_a_cluster_for_later_steps(runner):
    inputs = {"kubernetes-version": "1.36", "nodes": "2", "flags": "--secure-port=0", "name": "ci"}
    runner.use(ACTION, **inputs)
    (output,) = runner.lines("GITHUB_OUTPUT")
    assert runner.lines("GITHUB_ENV") == [output.replace("kubeconfig=", "KUBECONFIG="), "MOCKUBE_NAME=ci"]
    assert Path(output.removeprefix("kubeconfig=")).is_file()
    (command_folder,) = runner.lines("GITHUB_PATH")
    assert [path.name for path in Path(command_folder).iterdir()] == ["mockube"]
    status = run(f"{command_folder}/mockube", "status", "--name=ci", env=runner.variables, cwd=runner.folder)
    assert "3 of 3 ready" in status  # with the control-plane node
    assert "::group::Logs of mockube" in runner.use(ACTION / "logs")


def test_action_judges_an_operator(runner):
    command = runner.folder / "bin/mockube"
    script = 'for each; do case $each in --report=*.md) echo findings >"${each#*=}";; esac; done; echo "mockube $*"; while [ "$1" != -- ]; do shift; done; shift; "$@"; exit 1'
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    summary = runner.folder / "summary"
    runner.variables["GITHUB_STEP_SUMMARY"] = str(summary)
    action = yaml.safe_load((ACTION / "test-operator/action.yml").read_text())
    values = {
        "manifests": "crds deploy",
        "sample": "sample.yaml",
        "command": "cd / && COLOR=red printenv COLOR PWD",
        "baseline": "known.json",
        "reports": str(runner.folder / "reports"),
        "flags": "--jobs=2",
    }
    step = action["runs"]["steps"][1]
    environment = {name: INPUT.sub(lambda m: values[m[1]], text) for name, text in step["env"].items()}
    variables = {**runner.variables, **environment, "GITHUB_ACTION_PATH": str(ACTION / "test-operator")}
    ran = subprocess.run(
        ["bash", "-c", step["run"]], env=variables, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert summary.read_text() == "findings\n"
    words = ran.stdout.split()
    assert words[:3] == ["mockube", "test-operator", "--sample=sample.yaml"]
    assert words[4:8] == ["--jobs=2", "--filename=crds", "--filename=deploy", "--baseline=known.json"]
    assert ran.stdout.endswith("red\n/\n"), "the command is a line of a shell"


LOGS = 'echo "mockube $*"; [ "$1" != up ]'
NO_LOGS = 'echo "mockube $*" >&2; exit 1'


@pytest.mark.parametrize(
    ("script", "flags", "printed"),
    [
        pytest.param(
            LOGS,
            "",
            "mockube up --detach --nodes=3\n::group::Logs of mockube\nmockube logs --tail=500\n::endgroup::\n",
            id="failed start",
        ),
        pytest.param(NO_LOGS, "", "mockube up --detach --nodes=3\n", id="refused start"),
        *(
            pytest.param(
                NO_LOGS,
                flags,
                "mockube: name the cluster by the input `name`, and not in `flags`\n",
                id=flags,
            )
            for flags in ("--keep --name=a", "--name a", "-n a", "-na")
        ),
    ],
)
def test_action_that_cannot_start_prints_the_reason_and_the_logs(tmp_path, script, flags, printed):
    command = tmp_path / "bin/mockube"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    inputs = {"NODES": "3", "FLAGS": flags, "KUBERNETES_VERSION": "", "CLUSTER": ""}
    environment = {f"MOCKUBE_{name}": text for name, text in inputs.items()}
    environment["PATH"] = f"{command.parent}{os.pathsep}{os.defpath}"
    done = subprocess.run(
        [ACTION / "start.sh"], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode != 0
    assert done.stdout + done.stderr == printed


def test_names_in_the_actions_exist():
    for path in (ACTION / "action.yml", ACTION / "logs/action.yml"):
        action = yaml.safe_load(path.read_text())
        assert action["runs"]["using"] == "composite"
        assert set(INPUT.findall(path.read_text())) == set(action.get("inputs", {}))
        for step in action["runs"]["steps"]:
            program = path.parent / step["run"].strip('"').removeprefix("$GITHUB_ACTION_PATH/")
            assert program.resolve().stat().st_mode & 0o111, program


@pytest.mark.parametrize(
    ("script", "flags", "printed"),
    [
        pytest.param('[ "$1" = up ]', "", "", id="no kubeconfig"),
        pytest.param(
            "true", "--nodes=1 --name=a", "name the cluster by the variable MOCKUBE_NAME", id="name"
        ),
        pytest.param("true", "-n a", "name the cluster by the variable MOCKUBE_NAME", id="short name"),
    ],
)
def test_gitlab_job_without_a_cluster_fails_before_its_script(tmp_path, script, flags, printed):
    """Otherwise the script would change the cluster of ~/.kube/config."""
    job = yaml.safe_load(GITLAB.read_text())[".mockube"]
    command = tmp_path / "bin/mockube"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    variables = {**job["variables"], "MOCKUBE_UP": flags, "MOCKUBE_ENVIRONMENT": str(tmp_path)}
    lines = [line for line in job["before_script"] if "venv" not in line and "/pip" not in line]
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", "\n".join([*lines, "echo script"])],
        env={**variables, "PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert printed in done.stderr


@pytest.mark.release
def test_gitlab_job_has_a_cluster_and_prints_the_logs_if_it_fails(tmp_path):
    job = yaml.safe_load(GITLAB.read_text())[".mockube"]
    variables = {
        **empty_environment(tmp_path),
        **job["variables"],
        "MOCKUBE_PACKAGE": str(ROOT),
        "MOCKUBE_NAME": "ci",
        "MOCKUBE_UP": "--nodes=1 --secure-port=0",
        "MOCKUBE_ENVIRONMENT": str(tmp_path / "environment"),
        "PATH": f"{Path(os.path.realpath(sys.executable)).parent}{os.pathsep}{os.defpath}",
    }
    script = "\n".join([*job["before_script"], 'test -s "$KUBECONFIG" && echo started'])
    try:
        assert run("bash", "-e", "-c", script, env=variables, cwd=tmp_path).endswith("started\n")
    finally:
        after = {**variables, "CI_JOB_STATUS": "failed"}
        logs = run("bash", "-c", "\n".join(job["after_script"]), env=after, cwd=tmp_path)
    assert "apiserver" in logs
