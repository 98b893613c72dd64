"""The inputs of a check: files, folders, standard input, kustomizations and charts, read into objects.

A text that a chart renders equally for several minors is parsed once.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from mockube.failure import UsageError
from mockube.importing.cleaning import DEFINITION
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
_Part: TypeAlias = "Path | Sequence[LintObject]"
"""A chart, which is rendered later, or objects."""


class InputReader:
    def __init__(
        self,
        minors: Sequence[str],
        chart_options: ChartOptions,
        *,
        definitions: Sequence[LintObject] = (),
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`definitions` are those that the cluster has; `on_step` is called with what is done next if it takes long."""
        self._minors = minors
        self._chart_options = chart_options
        self._definitions = definitions
        self._on_step = on_step
        self._parsed: dict[tuple[str, bytes], Sequence[LintObject]] = {}

    def read(self, names: Sequence[str]) -> Inputs:
        """Read the objects of all inputs in their order; raise UsageError if one cannot be read.

        Charts are rendered last, in their order: each may ask for the kinds that files and earlier charts define.
        """
        parts = [part for name in names for part in self._parts_of_input(name)]
        definitions = [*self._definitions]
        for part in parts:
            if not isinstance(part, Path):
                definitions += filter(_is_definition, part)
        objects: dict[str, list[LintObject]] = {minor: [] for minor in self._minors}
        for part in parts:
            found = self._render(part, definitions) if isinstance(part, Path) else self._same(part)
            for minor, items in found.items():
                objects[minor] += items
            if isinstance(part, Path):
                definitions += filter(_is_definition, found[self._minors[-1]])
        return objects

    def _parts_of_input(self, name: str) -> Iterator[_Part]:
        if name == STDIN:
            yield _objects_of(sys.stdin.buffer.read(), "stdin")
            return
        path = Path(name)
        if path.name in (CHART_FILE, *KUSTOMIZATIONS) and path.is_file():
            path = path.parent
        if path.is_dir():
            yield from self._parts_of_folder(path)
        elif name.endswith(_PACKED):
            check_archive(_existing(path))
            yield path
        else:
            yield _objects_of(_read_file(path, may_be_pipe=True), name)

    def _same(self, objects: Sequence[LintObject]) -> Inputs:
        return dict.fromkeys(self._minors, objects)

    def _parts_of_folder(self, folder: Path) -> Iterator[_Part]:
        """Yield a chart, a kustomization, or the files of a folder and its folders, which may be charts or kustomizations."""
        if (folder / CHART_FILE).is_file():
            yield folder
            return
        files = [folder / name for name in KUSTOMIZATIONS if (folder / name).is_file()]
        if files:
            if not any(_COMPONENT.search(_read_file(file)) for file in files):
                self._on_step(f"building {folder}")
                yield _objects_of_kustomization(folder)
            return
        for path in sorted(folder.iterdir()):
            yield from self._parts_of_entry(path)

    def _parts_of_entry(self, path: Path) -> Iterator[_Part]:
        """Yield an entry of a folder. Files with other YAML, such as the values of a chart, are left out.

        One that cannot be read, as a link to nothing, is refused; the others are checked.
        """
        if path.name.startswith("."):
            return
        if path.is_dir():
            if not path.is_symlink():
                yield from self._parts_of_folder(path)
        elif path.suffix in SUFFIXES:
            try:
                text = read_file(path)
            except OSError as error:
                yield [_unreadable(path, "File", problem_of(error))]
                return
            objects = _objects_of(text, str(path))
            if any(map(_may_be_object, objects)):
                yield objects

    def _render(self, chart: Path, definitions: Sequence[LintObject]) -> Inputs:
        trees = [each.tree for each in definitions]
        rendered = render_chart(chart, self._minors, self._chart_options, trees)
        objects: dict[str, Sequence[LintObject]] = {}
        self._on_step(f"rendering {chart.name} for {self._minors[0]}")
        for index, (minor, result) in enumerate(zip(self._minors, rendered, strict=True), 1):
            for following in self._minors[index : index + 1]:
                self._on_step(f"rendering {chart.name} for {following}")
            objects[minor] = (
                [_unreadable(chart, "Chart", result.error)]
                if result.error
                else self._rendered_objects(str(chart), result.text)
            )
        return objects

    def _rendered_objects(self, chart: str, text: bytes) -> Sequence[LintObject]:
        objects: list[LintObject] = []
        for document in _SEPARATOR.split(text):
            key = (chart, document)
            if key not in self._parsed:
                source = _SOURCE.search(document)
                file = source[1].decode(errors="replace") if source else "chart"
                self._parsed[key] = _objects_of(document, file, has_lines=False, chart=chart)
            objects += self._parsed[key]
        return objects


def _is_definition(item: LintObject) -> bool:
    return item.group_kind == DEFINITION


def _objects_of(text: bytes, file: str, *, has_lines: bool = True, chart: str = "") -> Sequence[LintObject]:
    objects = (object_of(parsed, file=file, has_lines=has_lines, chart=chart) for parsed in parse(text, file))
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
