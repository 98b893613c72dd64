"""Copies of charts for minors that do not serve a version which helm takes for served.

Without a cluster, helm counts each group and version that it knows as served, such as `policy/v1beta1`, and no flag changes that. A
template that asks for one which the minor does not serve is rendered from a copy, in which it asks for a version that nobody has.
"""

import re
import shutil
import tarfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_TEMPLATES: Final = "templates"
_QUESTION: Final = re.compile(
    rb"""(\.Capabilities\.APIVersions\.Has\s+["`])([a-z0-9.-]+/v[a-z0-9]+|v[0-9][a-z0-9]*)(["`])"""
)
_NEVER: Final = b"/not-served"


class ChartCopies:
    """The copies of one chart, which exist while it is rendered."""

    def __init__(self, chart: Path, folder: Path) -> None:
        self._chart = chart
        self._folder = folder
        self._unpacked = chart if chart.is_dir() else _unpack(chart, folder / "unpacked")
        self._questions = frozenset(
            version for file in _templates(self._unpacked) for version in _questions(file)
        )
        """The versions without a kind that templates ask for."""

    def chart_for(self, minor: str, served: Collection[str]) -> Path:
        """Return the chart that helm renders for a minor: the chart itself if all versions are served that it asks for."""
        unserved = self._questions.difference(served)
        if not unserved:
            return self._chart
        copy = self._folder / minor / self._unpacked.name
        shutil.copytree(self._unpacked, copy, ignore_dangling_symlinks=True)
        for file in _templates(copy):
            text = file.read_bytes()
            changed = _QUESTION.sub(lambda match: _ask(match, unserved), text)
            if changed != text:
                file.write_bytes(changed)
        return copy


@contextmanager
def chart_copies(chart: Path) -> Iterator[ChartCopies]:
    with TemporaryDirectory(prefix="mockube-lint-") as folder:
        yield ChartCopies(chart, Path(folder))


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack a chart, which is one folder; the archive itself stands for one that cannot be unpacked, which helm refuses."""
    try:
        with tarfile.open(archive, "r:gz") as opened:
            opened.extractall(folder, filter="data")
    except (tarfile.TarError, OSError):
        return archive
    folders = [each for each in folder.iterdir() if each.is_dir()]
    return folders[0] if len(folders) == 1 else archive


def _templates(chart: Path) -> Iterator[Path]:
    """Yield the templates of a chart and of its dependencies that are not packed."""
    for folder in chart.rglob(_TEMPLATES) if chart.is_dir() else ():
        yield from (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def _questions(file: Path) -> Iterator[str]:
    for match in _QUESTION.finditer(file.read_bytes()):
        yield match[2].decode()


def _ask(match: re.Match[bytes], unserved: Collection[str]) -> bytes:
    suffix = _NEVER if match[2].decode() in unserved else b""
    return match[1] + match[2] + suffix + match[3]
