"""The program and the server of docs/guides/programs.md work as the page says."""

import os
import subprocess
import sys
import tomllib

from tests.support import packs
from tests.support.documents.pages import File, steps
from tools.packages import ROOT

PAGE = ROOT / "docs/guides/programs.md"


def test_program_and_server_of_the_page_pass_their_tests(tmp_path):
    for step in steps(PAGE.read_text()):
        assert isinstance(step, File)
        (tmp_path / step.name).write_text(step.text)
        if step.name == "pyproject.toml":
            project = tomllib.loads(step.text)["project"]
            ((group, entry_points),) = project["entry-points"].items()
            packs.add_metadata(tmp_path, project["name"], entry_points, group=group)
    flags = ("-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:aiohttp", "-p", "no:asyncio")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, "test_ledger.py", "test_shelf.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
