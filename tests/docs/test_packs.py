"""The pack of docs/guides/packs.md works as the page says: in named clusters, in separate processes and in the fixture."""

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from tests.support import packs
from tests.support.documents.pages import Command, File, steps
from tests.support.documents.terminal import Terminal
from tests.support.processes import kubectl_binaries
from tools.packages import ROOT

PAGE = ROOT / "docs/guides/packs.md"
SKIPPED = "*Not run by the tests"


@pytest.fixture
def project(tmp_path):
    """The files of the page, and the metadata that pip would install."""
    folder = tmp_path / "project"
    for step in steps(PAGE.read_text()):
        assert isinstance(step, File), "commands are run below"
        path = folder / step.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text)
    settings = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    packs.add_metadata(folder, settings["name"], settings["entry-points"]["mockube.packs"])
    return folder


def test_pack_works_in_fixture(project):
    flags = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:aiohttp", "-p", "no:asyncio")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, "test_website.py"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "1 passed" in answer.stdout


def test_pack_works_in_named_cluster(project, tmp_path, monkeypatch):
    """Run the commands of the page, apart from pip's."""
    kubectl_binaries.require_kubectl(shutil.which("kubectl"))
    text = PAGE.read_text().replace(SKIPPED, "*")
    commands = [
        step for step in steps(text) if isinstance(step, Command) and not step.text.startswith("pip ")
    ]
    assert commands[0].text == "mockube up --packs=kruise,website"
    monkeypatch.setenv("PYTHONPATH", str(project))
    terminal = Terminal(tmp_path / "home")
    try:
        for command in commands:
            terminal.type(command.text, command.output)
    finally:
        terminal.close()
