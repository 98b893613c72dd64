"""Find references in documents to files, tests and make targets that do not exist."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mockube.component_base.python_source import parse
from tools.fidelity_pages import anchor
from tools.packages import CODE

_CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+)?(?:#(?P<anchor>[^)]*))?\)")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)(?:::(?P<name>\w+))?`")
_FILE = re.compile(
    rf"`(?P<path>(?:{'|'.join(CODE)}|tools|tests|docs|benchmarks|deploy|examples|judges)/[\w./-]+)`"
)
_COMMAND = re.compile(r"(?:`|^\$ )make (?P<targets>[a-z0-9-]+(?: [a-z0-9-]+)*)", re.MULTILINE)
_TARGET = re.compile(r"^(?P<name>[a-z0-9-]+):", re.MULTILINE)


def dead_links(text: str, folder: Path) -> Iterator[str]:
    """Yield links to files and headings that do not exist; URLs are not checked."""
    for match in _LINK.finditer(_CODE_BLOCK.sub("", text)):
        target, heading = match["target"] or "", match["anchor"]
        if "://" in target:
            continue
        path = folder / target
        if not path.exists():
            yield target
        elif heading and heading not in anchors(path.read_text() if target else text):
            yield f"{target}#{heading}"


def anchors(text: str) -> set[str]:
    """Return GitHub's anchors of the headings; of equal ones, the first has no number."""
    titles = [match["title"].strip() for match in _HEADING.finditer(_CODE_BLOCK.sub("", text))]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    seen: Counter[str] = Counter()
    found = set()
    for title in plain:
        name = anchor(title)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def _functions(path: Path) -> set[str]:
    tree = parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def missing_tests(text: str, root: Path) -> Iterator[str]:
    """Yield references to tests that do not exist."""
    for match in _TEST.finditer(text):
        path = root / match["path"]
        if not path.exists() or (match["name"] and match["name"] not in _functions(path)):
            yield match[0].strip("`")


def missing_files(text: str, root: Path) -> Iterator[str]:
    """Yield names of files and folders of the repository that do not exist."""
    for match in _FILE.finditer(_CODE_BLOCK.sub("", text)):
        if not (root / match["path"]).exists():
            yield match["path"]


def unknown_commands(text: str, makefile: str) -> Iterator[str]:
    """Yield make targets that do not exist."""
    known = {match["name"] for match in _TARGET.finditer(makefile)}
    for match in _COMMAND.finditer(text):
        yield from (target for target in match["targets"].split() if target not in known)
