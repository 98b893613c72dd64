"""`mockube kubectl`, and commands of kubectl that are given to mockube."""

import asyncio
import os
import re
import shutil
import subprocess
import sys

import pytest

from mockube.cli import unknown_commands
from mockube.cli.main import COMMANDS as OUR_COMMANDS
from mockube.clusters.named_cluster import cluster_folder, hold_lock, write_record
from mockube.component_base.clock import RealClock
from mockube.kubectl import COMMANDS, INSTALL_COMMANDS, KUBECTL
from tests.support.processes.clusters import ready
from tests.support.processes.commands import exit_code
from tests.support.processes.kubectl_binaries import NO_KUBECTL
from tools.packages import ROOT

FAKE = """#!/bin/sh
echo "KUBECONFIG=$KUBECONFIG"
printf '<%s>' "$@"
echo
exit 7
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return the only folder of the PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return folder


def add_program(folder, name, text=FAKE):
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        pytest.param(["get", "pods", "--name=x"], ["get", "pods", "--name=x"], id="flags after the command"),
        pytest.param(
            ["-n", "kube-system", "get", "cm"], ["-n", "kube-system", "get", "cm"], id="flag before it"
        ),
        pytest.param(["--help"], ["--help"], id="help"),
        pytest.param(["exec", "web", "--", "ls", "--a_b"], ["exec", "web", "--", "ls", "--a_b"], id="dashes"),
        pytest.param(["--kubeconfig=/dev/null", "get", "cm"], ["get", "cm"], id="kubeconfig"),
        pytest.param(
            ["--kubeconfig", "/dev/null", "-v4", "get"],
            ["-v4", "get"],
            id="kubeconfig without an equals sign",
        ),
        pytest.param([], [""], id="nothing"),
    ],
)
def test_arguments_are_passed_to_kubectl(programs, tmp_path, arguments, passed):
    add_program(programs, "kubectl")
    answer = subprocess.run(
        [sys.executable, "-m", "mockube", "kubectl", *arguments],
        cwd=ROOT,
        env={**os.environ, "MOCKUBE_KUBECONFIG": os.devnull},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (7, "")
    assert answer.stdout == f"KUBECONFIG={os.devnull}\n{''.join(f'<{text}>' for text in passed)}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["get", "pods", "-h"],
        ["help", "get"],
        [],
        ["options"],
        ["version", "--client"],
        ["completion", "bash"],
        ["kustomize", "."],
    ],
    ids=" ".join,
)
def test_kubectl_that_sends_no_request_needs_no_cluster(programs, arguments):
    add_program(programs, "kubectl")
    answer = subprocess.run(
        [sys.executable, "-m", "mockube", "kubectl", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (7, "")
    assert answer.stdout.startswith(f"KUBECONFIG={os.devnull}\n")


@pytest.mark.parametrize(
    "arguments",
    [["get", "pods"], ["exec", "web", "--", "ls", "--help"], ["version"], ["config", "view"]],
    ids=" ".join,
)
def test_kubectl_that_sends_requests_needs_a_cluster(programs, arguments, capsys):
    add_program(programs, "kubectl")
    assert exit_code(["kubectl", *arguments]) == 3
    assert "there is no cluster" in capsys.readouterr().err


def test_kubectl_of_a_cluster_that_does_not_exist_is_refused(programs, capsys):
    add_program(programs, "kubectl")
    assert exit_code(["kubectl", "--name=blue", "get", "pods"]) == 3
    assert (
        capsys.readouterr().err
        == 'mockube: there is no cluster "blue": `mockube up --name=blue` starts one\n'
    )


def test_kubectl_of_a_stopped_cluster_is_refused(programs, tmp_path, capsys):
    add_program(programs, "kubectl")
    cluster_folder("default", os.environ).prepare()
    assert exit_code(["kubectl", "get", "pods"]) == 3
    assert capsys.readouterr().err == 'mockube: "default" is not running: `mockube up` starts it\n'


@pytest.mark.parametrize(("manager", "others"), [("brew", ["snap", "conda"]), ("snap", ["brew", "conda"])])
def test_missing_kubectl_names_the_command_of_the_package_manager(programs, capsys, manager, others):
    add_program(programs, manager)
    assert exit_code(["kubectl", "get", "pods"]) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith(
        f"mockube: kubectl is not installed: `{INSTALL_COMMANDS[manager]}` installs it"
    )
    assert all(INSTALL_COMMANDS[other] not in complaint for other in others)


def test_missing_kubectl_without_a_package_manager_names_all(programs, capsys):
    assert exit_code(["kubectl", "get", "pods"]) == 1
    complaint = capsys.readouterr().err
    assert all(f"`{command}`" in complaint for command in INSTALL_COMMANDS.values())


def test_guide_lists_the_command_of_each_package_manager():
    page = (ROOT / "docs/guides/clusters.md").read_text()
    assert all(f"`{command}`" in page for command in INSTALL_COMMANDS.values())


def test_commands_of_kubectl_are_known():
    program = shutil.which(KUBECTL)
    if program is None:
        pytest.skip(NO_KUBECTL)
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^  ([a-z][-a-z]+)  +[A-Z]", text, re.MULTILINE))
    assert len(names) > 30
    assert names <= COMMANDS


def test_names_of_other_tools_stand_for_our_commands():
    assert set(unknown_commands.OTHER_NAMES.values()) <= OUR_COMMANDS.keys()
    assert not unknown_commands.OTHER_NAMES.keys() & OUR_COMMANDS.keys()


@pytest.mark.parametrize(
    ("arguments", "command", "start", "line"),
    [
        (["get", "pods", "-A"], "get", "up --detach", "kubectl get pods -A"),
        (["pods", "-A"], "get", "up --detach", "kubectl get pods -A"),
        (
            ["--name=blue", "apply", "-f", "a b"],
            "apply",
            "up --detach --name=blue",
            "kubectl --name=blue apply -f 'a b'",
        ),
    ],
)
def test_command_of_kubectl_gets_the_line_to_type(programs, capsys, arguments, command, start, line):
    add_program(programs, "kubectl")
    assert exit_code(arguments) == 2
    assert capsys.readouterr().err == (
        f'mockube: "{command}" is a command of kubectl, and no cluster is running. Type\n'
        f"  mockube {start}\n  mockube {line}\n"
    )


def test_command_of_kubectl_names_the_clusters_that_run(programs, capsys):
    async def run_beside_cluster():
        folder = cluster_folder("blue", os.environ)
        async with hold_lock(folder, RealClock()):
            write_record(folder, ready())
            return exit_code(["get", "pods"])

    assert asyncio.run(run_beside_cluster()) == 2
    complaint = capsys.readouterr().err
    assert '"get" is a command of kubectl, and "default" is not running. Type\n' in complaint
    assert "or, for one that runs,\n  mockube kubectl --name=blue get pods\n" in complaint


def test_command_of_kubectl_gets_the_kubeconfig_of_the_cluster(programs, capsys):
    folder = cluster_folder("default", os.environ)

    async def run_beside_cluster():
        async with hold_lock(folder, RealClock()):
            write_record(folder, ready())
            return exit_code(["describe", "pod", "web"])

    assert asyncio.run(run_beside_cluster()) == 2
    complaint = capsys.readouterr().err
    assert "  mockube kubectl describe pod web\n" in complaint
    assert f"  export KUBECONFIG={folder.kubeconfig}\n  kubectl describe pod web\n" in complaint
    assert "kubectl is not installed" in complaint


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["logs", "-f", "deploy/web"],
            (
                '"deploy/web" is not one of apiserver, controller-manager, mockube '
                "(see `mockube logs --help`, or `mockube kubectl logs -f deploy/web`)"
            ),
        ),
        (
            ["version", "--client"],
            "unknown flag --client (see `mockube version --help`, or `mockube kubectl version --client`)",
        ),
        (["start"], 'unknown command "start": did you mean up? (see `mockube --help`)'),
        (
            ["rollut"],
            'unknown command "rollut": did you mean `mockube kubectl rollout`? (see `mockube --help`)',
        ),
        (["create", "cluster"], 'unknown command "create cluster": did you mean up? (see `mockube --help`)'),
        (["up", "web"], 'unexpected argument "web": did you mean --name=web? (see `mockube up --help`)'),
    ],
)
def test_word_of_another_tool_gets_what_was_meant(arguments, says, capsys):
    assert exit_code(arguments) == 2
    assert capsys.readouterr() == ("", f"mockube: {says}\n")
