"""The inputs of a check: files, folders, standard input, kustomizations and charts, read into objects.

A text that a chart renders equally for several minors is parsed once.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from mockube.failure import UsageError
from mockube.importing.documents import parse
from mockube.importing.files import problem_of, read_file
from mockube.objects.manifests import KUSTOMIZATIONS, SUFFIXES

from .findings import ObjectFinding, Outcome
from .objects import LintObject, object_of
from .renderers import CHART_FILE, ChartOptions, build_kustomization, check_archive, render_chart

STDIN: Final = "-"
_PACKED: Final = (".tgz", ".tar.gz")
_COMPONENT: Final = re.compile(rb"^kind:[ ]*Component\b", re.MULTILINE)
"""What marks a kustomization that only others include."""
_SOURCE: Final = re.compile(rb"^# Source: (.+?)\r?$", re.MULTILINE)
_SEPARATOR: Final = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)

Inputs = Mapping[str, Sequence[LintObject]]
"""The objects by the minor for which they are."""


class InputReader:
    def __init__(self, minors: Sequence[str], chart_options: ChartOptions) -> None:
        self._minors = minors
        self._chart_options = chart_options
        self._parsed: dict[bytes, Sequence[LintObject]] = {}

    def read(self, names: Sequence[str]) -> Inputs:
        """Read the objects of all inputs in their order; raise UsageError if one cannot be read."""
        objects: dict[str, list[LintObject]] = {minor: [] for minor in self._minors}
        for name in names:
            for minor, found in self._read_input(name).items():
                objects[minor] += found
        return objects

    def _read_input(self, name: str) -> Inputs:
        if name == STDIN:
            return self._same(_objects_of(sys.stdin.buffer.read(), "stdin"))
        path = Path(name)
        if path.name in (CHART_FILE, *KUSTOMIZATIONS) and path.is_file():
            path = path.parent
        if path.is_dir():
            return self._read_folder(path)
        if name.endswith(_PACKED):
            check_archive(_existing(path))
            return self._render(path)
        return self._same(_objects_of(_read_file(path, may_be_pipe=True), name))

    def _same(self, objects: Sequence[LintObject]) -> Inputs:
        return dict.fromkeys(self._minors, objects)

    def _read_folder(self, folder: Path) -> Inputs:
        """Read a chart, a kustomization, or the files of a folder and its folders, which may be charts or kustomizations."""
        if (folder / CHART_FILE).is_file():
            return self._render(folder)
        files = [folder / name for name in KUSTOMIZATIONS if (folder / name).is_file()]
        if files:
            is_component = any(_COMPONENT.search(_read_file(file)) for file in files)
            return {} if is_component else self._same(_objects_of_kustomization(folder))
        objects: dict[str, list[LintObject]] = {minor: [] for minor in self._minors}
        for path in sorted(folder.iterdir()):
            for minor, found in self._read_entry(path).items():
                objects[minor] += found
        return objects

    def _read_entry(self, path: Path) -> Inputs:
        """Read an entry of a folder. Files with other YAML, such as the values of a chart, are left out.

        One that cannot be read, as a link to nothing, is refused; the others are checked.
        """
        if path.name.startswith("."):
            return {}
        if path.is_dir():
            return {} if path.is_symlink() else self._read_folder(path)
        if path.suffix not in SUFFIXES:
            return {}
        try:
            text = read_file(path)
        except OSError as error:
            return self._same([_unreadable(path, "File", problem_of(error))])
        objects = _objects_of(text, str(path))
        return self._same(objects) if any(map(_may_be_object, objects)) else {}

    def _render(self, chart: Path) -> Inputs:
        rendered = render_chart(chart, self._minors, self._chart_options)
        return {
            minor: [_unreadable(chart, "Chart", each.error)]
            if each.error
            else self._rendered_objects(each.text)
            for minor, each in zip(self._minors, rendered, strict=True)
        }

    def _rendered_objects(self, text: bytes) -> Sequence[LintObject]:
        objects: list[LintObject] = []
        for document in _SEPARATOR.split(text):
            if document not in self._parsed:
                source = _SOURCE.search(document)
                file = source[1].decode(errors="replace") if source else "chart"
                self._parsed[document] = _objects_of(document, file, has_lines=False)
            objects += self._parsed[document]
        return objects


def _objects_of(text: bytes, file: str, *, has_lines: bool = True) -> Sequence[LintObject]:
    objects = (object_of(parsed, file=file, has_lines=has_lines) for parsed in parse(text, file))
    return [each for each in objects if each is not None]


def _objects_of_kustomization(folder: Path) -> Sequence[LintObject]:
    built = build_kustomization(folder)
    if built.error:
        return [_unreadable(folder, "Kustomization", built.error)]
    return _objects_of(built.text, str(folder), has_lines=False)


def _may_be_object(item: LintObject) -> bool:
    """Return whether a document of a file in a folder is an object, or would be one if it could be read."""
    if item.tree is not None or item.position is None:
        return bool(item.api_version and item.kind)
    return b"apiVersion" in item.position.text


def _unreadable(path: Path, kind: str, error: str) -> LintObject:
    """Return what stands for the objects of a chart, a kustomization or a file that could not be rendered or read."""
    finding = ObjectFinding(outcome=Outcome.REFUSED, message=error)
    tree = {"kind": kind, "metadata": {"name": path.name}}
    return LintObject(file=str(path), tree=tree, problems=[finding])


def _read_file(path: Path, *, may_be_pipe: bool = False) -> bytes:
    try:
        return read_file(_existing(path), may_be_pipe=may_be_pipe)
    except OSError as error:
        raise UsageError(f"{path}: {problem_of(error)}") from error


def _existing(path: Path) -> Path:
    if not path.exists():
        raise UsageError(f'the path "{path}" does not exist')
    return path
