"""Every command works that README.md lists as what no other tool has."""

import re
import shutil

import pytest

from tests.support.documents.terminal import Terminal
from tests.support.processes import kubectl_binaries
from tools.packages import ROOT

SECTION = "## What only mockube does"
ROW = re.compile(r"^\| .+ \| `(?P<command>[^`]+)` \|$", re.MULTILINE)
BEFORE = (
    "mockube up --detach --nodes=1 --profile=minimal",
    "mockube kubectl create deployment web --image=nginx",
    "mockube kubectl rollout status deployment web",
    "mockube mark good",
    "mockube kubectl scale deployment web --replicas=3",
)


def commands():
    section = (ROOT / "README.md").read_text().partition(SECTION)[2].partition("\n## ")[0]
    return [row["command"] for row in ROW.finditer(section)]


@pytest.fixture
def terminal(tmp_path):
    opened = Terminal(tmp_path)
    shutil.copytree(ROOT / "examples", opened.folder / "examples")
    yield opened
    opened.close()


@pytest.mark.release
@pytest.mark.timeout(300)
def test_each_command_of_table_works(terminal):
    kubectl_binaries.require_kubectl(shutil.which("kubectl"))
    listed = commands()
    assert len(listed) > 10
    for command in (*BEFORE, *listed):
        terminal.type(command, output=None)
