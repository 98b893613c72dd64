"""`mockube demo`: its steps with the machine's kubectl and without one, and its end by Ctrl+C."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.support.documents.output_comparison import difference, is_same_output
from tests.support.processes.kubectl_binaries import NO_KUBECTL
from tools.packages import ROOT

AT_A_TERMINAL = """
import os, pty, sys
process, terminal = pty.fork()
if not process:
    os.execv(sys.executable, [sys.executable, "-m", "mockube", "demo"])
shown = b""
try:
    while b"\\x1b[1m1/6" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\\x03")
    while part := os.read(terminal, 4096):
        shown += part
except OSError:  # the process has closed the terminal
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""
"""Sends Ctrl+C at the first step."""


def run(*command, path):
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, "PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def without_kubectl(tmp_path_factory):
    return run("-m", "mockube", "demo", path=tmp_path_factory.mktemp("empty"))


def test_demo_without_kubectl_deploys_scales_rolls_out_breaks_and_heals(without_kubectl):
    assert (without_kubectl.returncode, without_kubectl.stderr) == (0, "")
    shown = without_kubectl.stdout
    assert "kubectl is not installed" in shown
    assert "\x1b" not in shown
    steps = re.split(r"^\d/6  ", shown, flags=re.MULTILINE)[1:]
    assert [step.partition(":")[0].partition("\n")[0] for step in steps] == [
        "A cluster with three nodes, in this process",
        *("Deploy", "Scale", "Roll out", "Break", "Heal"),
    ]
    deploy, scale, roll_out, broken, healed = steps[1:]
    assert len(re.findall(r"^web-\S+ +1/1 +Running ", deploy, re.MULTILINE)) == 3
    assert re.search(r"^web +5/5 ", scale, re.MULTILINE)
    assert re.search(r"^web-\S+ +0 +0 +0 .*\nweb-\S+ +5 +5 +5 ", roll_out, re.MULTILINE)
    assert re.search(r"^node-1 +NotReady ", broken, re.MULTILINE)
    assert re.search(r" Terminating .* node-1 ", broken)
    assert re.search(r"^node-1 +Ready ", healed, re.MULTILINE)
    assert len(re.findall(r"^web-\S+ +1/1 +Running ", healed, re.MULTILINE)) == 5


def test_demo_with_kubectl_prints_the_same(without_kubectl):
    if shutil.which("kubectl") is None:
        pytest.skip(NO_KUBECTL)
    with_kubectl = run("-m", "mockube", "demo", path=os.environ["PATH"])
    assert (with_kubectl.returncode, with_kubectl.stderr) == (0, "")
    texts = [_comparable(answer.stdout) for answer in (without_kubectl, with_kubectl)]
    assert is_same_output(*texts), difference(*texts)


def _comparable(text):
    """Return the text without the progress of rollouts and the pods that were on the broken node, which are random."""
    lines = re.sub(r"(?m)^(?:Waiting for deployment|kubectl is not installed|web-\S+ +1/1 ).*\n", "", text)
    return re.sub(r"(?m)^(NAME.*RESTARTS).*$", r"\1", lines)


def test_interrupted_demo_ends_without_a_traceback(tmp_path):
    ended = run("-c", AT_A_TERMINAL, path=tmp_path)
    assert ended.returncode == 130, ended.stdout
    assert "Traceback" not in ended.stdout
    assert "The cluster is gone" not in ended.stdout


def test_failed_command_of_kubectl_ends_the_demo(tmp_path):
    (tmp_path / "kubectl").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "kubectl").chmod(0o755)
    answer = run("-m", "mockube", "demo", path=tmp_path)
    assert answer.returncode == 1
    assert answer.stderr == "mockube: `kubectl get nodes` failed with exit code 1\n"
