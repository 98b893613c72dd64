"""Files, tests and make targets that the documents refer to exist."""

import re
from collections import Counter

import pytest

from tests.architecture.documents import dead_links, missing_files, missing_tests, unknown_commands
from tools.packages import ROOT

DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
DECISIONS = tuple(sorted((ROOT / "docs/decisions").glob("*.md")))

PAGES_FROM_A_SEARCH = (
    *sorted((ROOT / "docs/guides").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
)
"""Pages that a search engine may show to a reader who does not know what mockube is."""

each_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)
each_decision = pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.stem)


@each_document
def test_link_targets_exist(document):
    assert list(dead_links(document.read_text(), document.parent)) == []


@pytest.mark.parametrize("page", PAGES_FROM_A_SEARCH, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_page_says_at_its_start_what_mockube_is(page):
    _title, first_paragraph = page.read_text().split("\n\n")[:2]
    assert "README.md) is a Kubernetes control plane in Python" in first_paragraph


def test_front_page_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1200


def test_unreleased_part_of_changelog_is_short():
    _before, unreleased = (ROOT / "CHANGELOG.md").read_text().split("\n## [")[:2]
    assert unreleased.startswith("Unreleased]")
    assert len(unreleased.split()) <= 2400


@each_document
def test_named_tests_exist(document):
    assert list(missing_tests(document.read_text(), ROOT)) == []


@each_document
def test_named_files_exist(document):
    assert list(missing_files(document.read_text(), ROOT)) == []


@each_document
def test_named_commands_exist(document):
    assert list(unknown_commands(document.read_text(), (ROOT / "Makefile").read_text())) == []


@each_decision
def test_decision_has_context_decision_and_consequence(decision):
    text = decision.read_text()
    assert re.match(
        rf"# {decision.stem[:4]}: \S.*\n\n\*\*Status\.\*\* (Accepted|Replaced by \[\d{{4}}\]\(.*\))\.", text
    )
    parts = [text.find(f"**{part}.**") for part in ("Context", "Decision", "Consequence")]
    assert -1 < parts[0] < parts[1] < parts[2]


def test_decision_numbers_are_unique():
    assert [
        number for number, count in Counter(path.name[:4] for path in DECISIONS).items() if count > 1
    ] == []


def test_dead_link_is_detected(tmp_path):
    (tmp_path / "there.md").write_text("## A [part](x), `b`\n## Part\n## Part\n```\n## code\n```\n")
    text = (
        "# Here\n[a](there.md#a-part-b) [b](gone.md) [c](#here) [d](https://example.org/x#y)\n"
        "[e](there.md#part-1) [f](there.md#part-2) [g](there.md#code) [h](#there)\n```\n[i](not-a-link)\n```\n"
    )
    assert list(dead_links(text, tmp_path)) == ["gone.md", "there.md#part-2", "there.md#code", "#there"]


def test_missing_test_is_detected(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_x.py").write_text("async def test_there(): ...\n")
    named = (
        "tests/test_x.py",
        "tests/test_x.py::test_there",
        "tests/test_x.py::test_gone",
        "tests/test_y.py",
    )
    text = " ".join(f"`{name}`" for name in named)
    assert list(missing_tests(text, tmp_path)) == ["tests/test_x.py::test_gone", "tests/test_y.py"]


def test_missing_file_is_detected(tmp_path):
    (tmp_path / "etcd").mkdir()
    (tmp_path / "etcd/kv.py").touch()
    text = (
        "`etcd/kv.py`, `etcd/`, `etcd/gone.py`, `/etcd/key`, `apiserver/gone/`\n```\n`etcd/example.py`\n```\n"
    )
    assert list(missing_files(text, tmp_path)) == ["etcd/gone.py", "apiserver/gone/"]


def test_unknown_make_target_is_detected():
    makefile = "up: x ## Start\ntypes:\nlift-off:\n"
    text = "`make up`, `make lift-off`, `make types launch`\n$ make lift   # x\n"
    assert list(unknown_commands(text, makefile)) == [
        "launch",
        "lift",
    ]
