"""The pages name the releases of Kubernetes that are served, and the version of mockube."""

import re

from mockube.apimachinery.schema.minors import RELEASES
from tests.architecture.source import settings
from tests.support.processes.process import ROOT

VERSION = re.compile(r"\bmockube[-: ](\d+\.\d+\.\d+)|\bref: v(\d+\.\d+\.\d+)")
"""Where a page names the version of mockube: in output, in the name of a file, in a job."""


def test_readme_names_served_releases():
    (row,) = re.findall(r"^\| Kubernetes \| .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert re.findall(r"\b1\.\d+\.\d+\b", row) == [*RELEASES.values()]


def test_table_of_releases_is_that_of_server():
    page = (ROOT / "docs/fidelity/releases.md").read_text()
    rows = re.findall(r"^\| (1\.\d+) \| (1\.\d+\.\d+) \|$", page, re.MULTILINE)
    assert dict(rows) == RELEASES


def test_pages_name_the_version_of_the_project():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {
        (path.relative_to(ROOT).as_posix(), output or ref)
        for path in pages
        for output, ref in VERSION.findall(path.read_text())
    }
    version = settings()["project"]["version"]
    assert len(found) >= 5
    assert {(page, named) for page, named in found if named != version} == set()


def test_changelog_has_a_section_of_the_version():
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[:2] == ["Unreleased", settings()["project"]["version"]]
