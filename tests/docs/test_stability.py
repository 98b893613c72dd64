"""The page on what is stable has every exit code."""

import re

from mockube.cli.output import Code
from tests.support.processes.process import ROOT


def test_page_lists_every_exit_code():
    page = (ROOT / "docs/stability.md").read_text()
    assert re.findall(r"^\| (\d+) \| ", page, re.MULTILINE) == [str(code.value) for code in Code]
