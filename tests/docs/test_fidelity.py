"""docs/fidelity.md lists every missing controller."""

import re

from mockube.controller_manager.config.selection import DISABLED_UPSTREAM, UNIMPLEMENTED
from tools.packages import ROOT


def test_page_names_every_missing_controller():
    page = (ROOT / "docs/fidelity.md").read_text()
    _, _, section = page.partition("### Refused: missing controllers\n")
    rows = "".join(line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`([a-z-]+-controller)`", rows)) == DISABLED_UPSTREAM.keys() | UNIMPLEMENTED
