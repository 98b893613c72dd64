"""Every command and program in the documents runs and prints the documented output."""

import shutil
from pathlib import Path

import pytest

from tests.support.documents.pages import SHELLS, Command, File, Program, blocks, sections, steps
from tests.support.documents.terminal import Terminal, UnexpectedOutput
from tests.support.processes import go_programs, helm_binary, kubectl_binaries
from tests.support.stores.etcd_server import etcd_binary
from tools.packages import ROOT

FOLDERS = (
    path
    for path in ROOT.iterdir()
    if path.is_dir() and not path.name.startswith(".") and path.name != "build"  # what judges have fetched
)
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            page
            for folder in FOLDERS
            if not (folder / "pyvenv.cfg").exists()
            for page in folder.rglob("*.md")
        ),
    ]
)
"""All Markdown pages of the repository; a new page is tested without being listed."""

EXAMPLES = ROOT / "examples"

IN_SECTIONS = ("docs/guides/helm.md",)
"""Long pages whose sections do not need each other: each is a test of its own, which workers share."""

LONG = (
    "docs/guides/clusters.md",
    "docs/guides/etcd.md",
    "docs/guides/fork.md",
    "docs/guides/helm.md",
    "docs/guides/history.md",
    "docs/guides/kopf.md",
    "docs/guides/lint.md",
    "docs/guides/nodes.md",
    "docs/guides/operators.md",
    "docs/guides/report.md",
    "docs/guides/scale.md",
    "docs/guides/scheduler.md",
    "docs/guides/simulation.md",
    "docs/guides/snapshots.md",
    "docs/guides/testing.md",
    "docs/guides/uniteddeployment.md",
    "docs/guides/upgrades.md",
    "docs/guides/versions.md",
    "examples/helm/README.md",
    "examples/operator/README.md",
    "examples/thousand-pods/README.md",
)
"""Pages that start many clusters or a large one, or build helm."""


def sessions():
    """Yield a page and the text of one session: that of the page, or of each of its sections that has steps."""
    for page in PAGES:
        name, text = page.relative_to(ROOT).as_posix(), page.read_text()
        marks = [pytest.mark.release] if name in LONG else []
        if name not in IN_SECTIONS:
            yield pytest.param(page, text, id=name, marks=marks)
            continue
        for title, section in sections(text):
            if [*steps(section)]:
                yield pytest.param(page, section, id=f"{name} {title}", marks=marks)


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pytest.fixture(scope="session")
def helm(tmp_path_factory):
    return helm_binary.helm(tmp_path_factory)


@pytest.fixture
def terminal(tmp_path):
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)
@pytest.mark.parametrize(("page", "text"), [*sessions()])
def test_page_shows_real_output(page, text, terminal, record_property, request):
    lay_out(page, terminal.folder)
    for reason in (block.not_run for block in blocks(text) if block.not_run):
        record_property("block not run", reason)
    for step in steps(text):
        if isinstance(step, Command):
            _require_tools(step.text, terminal, request)
        try:
            _take(step, terminal)
        except UnexpectedOutput as error:
            error.add_note(f"{page}:{step.line}")
            raise
        record_property("step", type(step).__name__)


def lay_out(page, folder):
    """Copy the files for a page: an example runs in its own folder, other pages in the root of a checkout."""
    if page.is_relative_to(EXAMPLES):
        shutil.copytree(page.parent, folder, dirs_exist_ok=True)
    else:
        shutil.copytree(EXAMPLES, folder / "examples")
        shutil.copytree(ROOT / "deploy", folder / "deploy")


def _require_tools(command, terminal, request):
    if "kubectl" in command:
        kubectl_binaries.require_kubectl(shutil.which("kubectl"))
    if "helm" in command.split():
        terminal.link_program(request.getfixturevalue("helm"))
    if command.startswith("etcd"):
        for name in ("etcd", "etcdctl"):
            terminal.link_program(Path(etcd_binary()).with_name(name))


def _take(step, terminal):
    match step:
        case File(name=name, text=text):
            terminal.write(name, text)
        case Command(text=text, output=output):
            terminal.type(text, output)
        case Program(line=line, text=text, output=output):
            terminal.write(f"line_{line}.py", text)
            terminal.type(f"python line_{line}.py", output)


@each_page
def test_commands_of_page_can_be_found(page):
    """Commands are in console blocks; commands in other blocks would not be tested."""
    for block in blocks(page.read_text()):
        assert block.language not in SHELLS or block.file, f"line {block.line}: write ```console"
        assert block.language == "console" or "\n$ " not in f"\n{block.text}", f"line {block.line}: a prompt"
