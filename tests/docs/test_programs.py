"""The program of docs/guides/programs.md works as the page says."""

import os
import subprocess
import sys
import tomllib

from tests.support import packs
from tests.support.documents.pages import File, steps
from tools.packages import ROOT

PAGE = ROOT / "docs/guides/programs.md"


def test_program_of_the_page_passes_its_test(tmp_path):
    for step in steps(PAGE.read_text()):
        assert isinstance(step, File)
        (tmp_path / step.name).write_text(step.text)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    packs.add_metadata(
        tmp_path,
        project["name"],
        project["entry-points"]["mockube.programs"],
        group="mockube.programs",
    )
    flags = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:aiohttp", "-p", "no:asyncio")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, "test_ledger.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
