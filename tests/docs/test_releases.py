"""The pages name the releases of Kubernetes that are served."""

import re

from mockube.apimachinery.schema.minors import RELEASES
from tests.support.processes.process import ROOT


def test_readme_names_served_releases():
    (row,) = re.findall(r"^\| Kubernetes \| .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert re.findall(r"\b1\.\d+\.\d+\b", row) == [*RELEASES.values()]


def test_table_of_releases_is_that_of_server():
    page = (ROOT / "docs/fidelity/releases.md").read_text()
    rows = re.findall(r"^\| (1\.\d+) \| (1\.\d+\.\d+) \|$", page, re.MULTILINE)
    assert dict(rows) == RELEASES
