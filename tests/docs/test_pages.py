"""Every command and every program of the documents, as their readers meet them."""

import shutil

import pytest

from tests.architecture.source import ROOT
from tests.support import kubectls
from tests.support.pages import SHELLS, Command, File, Program, blocks, steps
from tests.support.terminal import NotAsShown, Terminal

PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not any(part.startswith(".") for part in page.relative_to(ROOT).parts)
)
"""Whoever writes a page has it followed here."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pytest.fixture
def terminal(tmp_path):
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@each_page
def test_what_a_page_shows_is_so(page, terminal, record_property, tmp_path):
    text = page.read_text()
    for reason in (block.not_run for block in blocks(text) if block.not_run):
        record_property("block not run", reason)
    for step in steps(text):
        try:
            _take(step, terminal, tmp_path)
        except NotAsShown as error:
            error.add_note(f"{page}:{step.line}")
            raise
        record_property("step", type(step).__name__)


def _take(step, terminal, folder):
    match step:
        case File(name=name, text=text):
            (terminal.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (terminal.folder / name).write_text(text)
        case Command(text=text, shown=shown):
            if "kubectl" in text:
                kubectls.present(shutil.which("kubectl"))
            terminal.type(text, shown)
        case Program(line=line, text=text, shown=shown):
            program = folder / f"line_{line}.py"
            program.write_text(text)
            terminal.type(f"python {program}", shown)


@each_page
def test_commands_stand_where_they_are_found(page):
    """In sessions: a prompt elsewhere, or a language of shells, would be read by people and by no test."""
    for block in blocks(page.read_text()):
        assert block.language not in SHELLS or block.file, f"line {block.line}: write ```console"
        assert block.language == "console" or "\n$ " not in f"\n{block.text}", f"line {block.line}: a prompt"
