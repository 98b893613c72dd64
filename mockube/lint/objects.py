"""The objects to check: what the files and charts contain, each with its position. Pure."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.importing import cleaning
from mockube.importing.documents import Parsed, object_problem, type_name

from .findings import Api, ObjectFinding, Outcome
from .positions import TextPosition, parse_path

_LINE: Final = re.compile(r"\bline (\d+)")
_DUPLICATE: Final = re.compile(r'line (\d+): (key (?:"(?:[^"\\]|\\.)*"|[^\s"]+) already set in map)')

_read_api: Final = msgspec.json.Decoder(Api).decode
_TEMPLATE_HINT: Final = " (if this is a template of a chart, name the chart's folder instead)"


class Identity(Struct, frozen=True):
    """What identifies an object in the texts that a chart renders for several minors."""

    file: str
    kind: str
    namespace: str
    name: str


class LintObject(Struct, frozen=True, kw_only=True, dict=True):
    """An object of a file, or what is there instead of one."""

    file: str
    tree: Any
    position: TextPosition | None = None
    """None if the object was rendered from a template."""
    is_printed: bool = False
    """Whether it was printed from a cluster, and `tree` is what a user would apply."""
    applied_as: Api | None = None
    """The version in which `kubectl apply` last sent a printed object."""
    problems: Sequence[ObjectFinding] = ()
    """What is wrong with its text in every minor."""
    chart: str = ""
    """The chart that rendered it; "" if none did."""

    @property
    def api_version(self) -> str:
        return self._text("apiVersion")

    @property
    def kind(self) -> str:
        return self._text("kind")

    @property
    def name(self) -> str:
        return self._metadata_text("name") or self._metadata_text("generateName")

    @property
    def namespace(self) -> str:
        """The namespace that the object names; "" if it names none."""
        return self._metadata_text("namespace")

    @property
    def identity(self) -> Identity:
        return Identity(self.file, self.kind, self.namespace, self.name)

    @property
    def group_kind(self) -> GroupKind:
        group, slash, _ = self.api_version.rpartition("/")
        return GroupKind(group if slash else "", self.kind)

    @property
    def title(self) -> str:
        """The object's name as kubectl prints it, such as `deployment.apps/web`."""
        kind_name = str(self.group_kind).lower()
        return (f"{kind_name}/{self.name}" if self.name else kind_name) or "document"

    @property
    def place(self) -> str:
        """The chart or the folder that it is from: what is in one place belongs together."""
        return self.chart or self.file.rpartition("/")[0]

    @property
    def line(self) -> int:
        return 0 if self.position is None else self.position.line

    @cached_property
    def body(self) -> bytes:
        """The object as JSON. A JSON text is sent as it is, so that the server finds its duplicate fields."""
        position = self.position
        if (
            position is not None
            and not position.path
            and not self.is_printed
            and position.text.lstrip()[:1] == b"{"
        ):
            try:
                orjson.loads(position.text)
            except orjson.JSONDecodeError:
                pass
            else:
                return position.text
        return orjson.dumps(self.tree)

    def line_of(self, finding: ObjectFinding) -> int:
        """Return the line of a finding; 0 if the object has no lines."""
        if self.position is None:
            return 0
        if finding.line or not finding.field:
            return finding.line or self.line
        return self.position.line_of(parse_path(finding.field))

    def _text(self, name: str) -> str:
        value = self.tree.get(name) if isinstance(self.tree, dict) else None
        return value if isinstance(value, str) else ""

    def _metadata_text(self, name: str) -> str:
        metadata = self.tree.get("metadata") if isinstance(self.tree, dict) else None
        value = metadata.get(name) if isinstance(metadata, dict) else None
        return value if isinstance(value, str) else ""


def object_of(parsed: Parsed, *, file: str, has_lines: bool = True, chart: str = "") -> LintObject | None:
    """Return the object of a document or item; None if it was printed from a cluster and would not be created by a user."""
    position = TextPosition(text=parsed.text, first_line=parsed.first_line, path=parsed.path)
    problems, tree = [*_problems(parsed)], parsed.tree
    is_printed = not problems and _is_printed_by_server(tree)
    if is_printed:
        if cleaning.reason_to_skip(tree) or _has_controller(tree):
            return None
        tree = _as_applied(tree)
    return LintObject(
        file=file,
        tree=tree,
        position=position if has_lines else None,
        is_printed=is_printed,
        applied_as=_applied_api(tree) if is_printed else None,
        problems=problems,
        chart=chart,
    )


def _is_printed_by_server(tree: ReadOnlyTree) -> bool:
    """Return whether `kubectl get -o yaml` printed an object: only a server sets the uid."""
    metadata = tree.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid")) and not object_problem(tree)


def _applied_api(tree: ReadOnlyTree) -> Api | None:
    """Return the version of the object in the annotation of `kubectl apply`; None if there is none."""
    try:
        return _read_api(meta.annotations(tree).get(wellknown.ANNOTATION_LAST_APPLIED, ""))
    except msgspec.DecodeError:
        return None


def _has_controller(tree: ReadOnlyTree) -> bool:
    return any(reference.get("controller") for reference in meta.owner_references(tree))


def _as_applied(tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return a printed object without what the server and controllers of its cluster have set."""
    without_status = {name: value for name, value in tree.items() if name != "status"}
    clean = cleaning.clean_object(without_status, ())
    return cleaning.without_assigned_fields(clean) or clean


def _problems(parsed: Parsed) -> Iterator[ObjectFinding]:
    before = parsed.first_line - 1
    if parsed.error is not None:
        text = str(parsed.error)
        line = _LINE.search(text)
        message = _LINE.sub(lambda match: f"line {int(match[1]) + before}", text)
        yield ObjectFinding(
            outcome=Outcome.REFUSED,
            message=message + (_TEMPLATE_HINT if b"{{" in parsed.text else ""),
            line=int(line[1]) + before if line else 0,
        )
        return
    for text in parsed.strict_errors:
        for number, problem in _DUPLICATE.findall(text):
            yield ObjectFinding(
                outcome=Outcome.DROPPED,
                message=f"{problem}: the last value counts",
                line=int(number) + before,
            )
    yield from _missing_type(parsed.tree)


def _missing_type(tree: Any) -> Iterator[ObjectFinding]:
    """Yield what prevents that an object is sent to a server."""
    if not isinstance(tree, dict):
        yield ObjectFinding(outcome=Outcome.REFUSED, message=f"not an object: it is {type_name(tree)}")
        return
    missing = [
        name for name in ("apiVersion", "kind") if not isinstance(tree.get(name), str) or not tree[name]
    ]
    if missing:
        yield ObjectFinding(outcome=Outcome.REFUSED, message=", ".join(f"{name} not set" for name in missing))
        return
    try:
        GroupVersion.parse(meta.api_version(tree))
    except ValueError as error:
        yield ObjectFinding(outcome=Outcome.REFUSED, message=str(error))
