"""What an explanation consists of: a cause, the evidence for it, and what would change it."""

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.groups import CONTROL
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.component_base.text_pairs import shortened_pair

from .commands import log_command
from .facts import DryRun, FieldPath, Member, WritesOf

State: TypeAlias = Literal["Explained", "NoProblem", "Unknown"]
MAX_TEXT: Final = 2_000
"""The characters of one text; of a longer one, the beginning is shown."""
MAX_ITEMS: Final = 50
"""The evidence, remedies and related objects of one explanation."""
MAX_ORIGINS: Final = 10
"""The fields of one explanation whose last writes are named."""
MAX_VALUE: Final = 100
"""The characters of a value that a write has set."""
MAX_NODES: Final = 200
"""The nodes of one table: those that lack least come first."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class ObjectName(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """An object by its kind and name."""

    kind: str
    name: str
    api_version: str = ""
    namespace: str = ""

    @classmethod
    def of(cls, obj: ReadOnlyTree) -> "ObjectName":
        return cls(
            kind=meta.kind(obj),
            name=meta.name(obj),
            api_version=meta.api_version(obj),
            namespace=meta.namespace(obj),
        )

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fact, and where it was found."""

    text: str
    source: str = ""
    """A field, a condition, an Event, a log."""
    time: str = ""


class Remedy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What would change the state."""

    text: str
    command: str = ""
    """A command that does it; "" if none does."""
    request: DryRun | None = None
    """What the command requests; None if it changes nothing. A remedy whose request the server would refuse is not offered."""


class LastWrite(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A write that changed a field: who, when, and what the field was and is."""

    revision: int
    source: str = ""
    """managedFields for what these say of a write before the history, whose user and revision nobody knows; "" for the history."""
    type: str
    """ADDED, MODIFIED or DELETED, of the object."""
    time: str = ""
    user: str = ""
    program: str = ""
    """The field manager, or else the beginning of the User-Agent."""
    verb: str = ""
    before: str = ""
    """The value as JSON; "" if it was not set."""
    after: str = ""


class Origin(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field that the cause names, and who wrote it last. The first one of an explanation is that of its cause."""

    object: ObjectName
    path: FieldPath = ()
    """The field; empty if the object itself is meant, such as one that does not exist."""
    writes: Sequence[LastWrite] = ()
    """The newest writes that changed it, the newest first."""
    is_undone: bool = True
    """Whether the value before the last write would help."""

    @classmethod
    def of(cls, obj: ReadOnlyTree, *path: str | Member) -> "Origin":
        return cls(object=ObjectName.of(obj), path=path)

    @classmethod
    def named(cls, api_version: str, kind: str, namespace: str, name: str, *path: str | Member) -> "Origin":
        named = ObjectName(kind=kind, api_version=api_version, namespace=namespace, name=name)
        return cls(object=named, path=path)


class NodeVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a plugin of the scheduler rejects a node."""

    node: str
    plugin: str
    reason: str
    detail: str = ""


class Related(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Another object, and its own cause."""

    object: ObjectName
    cause: str


class Explanation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: State = "Explained"
    cause: str
    evidence: Sequence[Evidence] = ()
    nodes: Sequence[NodeVerdict] = ()
    remedies: Sequence[Remedy] = ()
    related: Sequence[Related] = ()
    origins: Sequence[Origin] = ()


def writes_question(origin: Origin) -> WritesOf:
    """Return the question who wrote an origin."""
    named = origin.object
    return WritesOf(
        kind=named.kind,
        group=named.api_version.rpartition("/")[0],
        namespace=named.namespace,
        name=named.name,
        path=origin.path,
    )


def no_problem(cause: str, *evidence: Evidence) -> Explanation:
    return Explanation(state="NoProblem", cause=cause, evidence=evidence)


def unknown(cause: str, *evidence: Evidence) -> Explanation:
    """Return an explanation that says that the cause is not known, with what is known."""
    return Explanation(state="Unknown", cause=cause, evidence=evidence)


def status_of(explanation: Explanation, subject: ReadOnlyTree | None, unreadable: Sequence[str]) -> Tree:
    """Return the status of an object of the kind Explanation, of limited size."""
    tree: Tree = msgspec.to_builtins(explanation)
    tree = {"state": explanation.state, **tree}
    if explanation.origins:
        tree["origins"] = [*map(_origin_tree, explanation.origins)]
    for field, limit in (
        ("evidence", MAX_ITEMS),
        ("remedies", MAX_ITEMS),
        ("related", MAX_ITEMS),
        ("origins", MAX_ORIGINS),
        ("nodes", MAX_NODES),
    ):
        items = tree.get(field, ())
        if len(items) > limit:
            tree[field] = items[:limit]
            tree.setdefault("omitted", {})[field] = len(items) - limit
    if subject is not None:
        tree["object"] = {**msgspec.to_builtins(ObjectName.of(subject)), "uid": meta.uid(subject)}
    if unreadable:
        tree["unreadable"] = [*unreadable[:MAX_ITEMS]]
    return {name: _shorten(value) for name, value in tree.items()}


def _origin_tree(origin: Origin) -> Tree:
    named, field = origin.object, field_text(origin.path)
    tree: Tree = {"object": msgspec.to_builtins(named)}
    if field:
        tree["field"] = field
    if origin.writes:
        tree["writes"] = [*map(msgspec.to_builtins, origin.writes)]
        if not named.api_version.startswith(CONTROL):  # Changes do not have them
            tree["command"] = log_command(named.api_version, named.kind, named.namespace, named.name, field)
    return tree


def field_text(path: FieldPath) -> str:
    """Return the path of a field as `mockube blame` prints it."""
    text = ""
    for step in path:
        if isinstance(step, Member):
            text += f"[{step.name if _PLAIN.fullmatch(step.name) else json_text(step.name)}]"
        elif _PLAIN.fullmatch(step) is None:
            text += f"[{json_text(step)}]"
        else:
            text += f".{step}" if text else step
    return text


def json_text(value: Any) -> str:
    """Return a value as JSON on one line, of limited length."""
    return shortened_pair(orjson.dumps(value).decode(), "", MAX_VALUE)[0]


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]} …"
    if isinstance(value, dict):
        return {name: _shorten(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shorten(item) for item in value]
    return value
