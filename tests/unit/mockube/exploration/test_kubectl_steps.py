import stat

import pytest

from mockube.exploration import steps
from mockube.exploration.scenario import StepOperation
from mockube.exploration.steps import StepFailed, run_kubectl


@pytest.fixture
def kubectl(tmp_path, monkeypatch):
    """Return a function that writes a kubectl with some lines, and runs it as a step does."""
    program = tmp_path / "kubectl"
    monkeypatch.setattr(steps, "find_kubectl", lambda: str(program))

    def run(lines, *arguments, namespace="default", seconds=60.0):
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        operation = StepOperation(
            type="kubectl", arguments=arguments, namespace=namespace, folder=tmp_path / "scenario"
        )
        run_kubectl(tmp_path / "kubeconfig", operation, seconds)

    (tmp_path / "scenario").mkdir()
    return run


def test_kubectl_runs_in_the_folder_and_the_namespace_without_input(kubectl, tmp_path):
    kubectl('{ pwd; echo "$@"; cat; } > output', "get", "pods", namespace="shop")
    lines = (tmp_path / "scenario" / "output").read_text().splitlines()
    assert lines == [
        str(tmp_path / "scenario"),
        f"--kubeconfig={tmp_path}/kubeconfig --namespace=shop get pods",
    ]


@pytest.mark.parametrize(
    ("lines", "seconds", "message"),
    [
        pytest.param("echo no >&2; exit 1", 60.0, "^kubectl get pods: no$", id="error"),
        pytest.param("exit 3", 60.0, "^kubectl get pods: it ended with code 3$", id="no text"),
        pytest.param("exec tail -f /dev/null", 0.01, "did not end within 0.01 s", id="too slow"),
    ],
)
def test_kubectl_that_fails(lines, seconds, message, kubectl):
    with pytest.raises(StepFailed, match=message):
        kubectl(lines, "get", "pods", seconds=seconds)
