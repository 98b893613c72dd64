"""What an explanation consists of: a cause, the evidence for it, and what would change it."""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree, Tree

State: TypeAlias = Literal["Explained", "NoProblem", "Unknown"]
MAX_TEXT: Final = 2_000
"""The characters of one text; of a longer one, the beginning is shown."""
MAX_ITEMS: Final = 50
"""The evidence, remedies and related objects of one explanation."""
MAX_NODES: Final = 200
"""The nodes of one table: those that lack least come first."""


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


def no_problem(cause: str, *evidence: Evidence) -> Explanation:
    return Explanation(state="NoProblem", cause=cause, evidence=evidence)


def unknown(cause: str, *evidence: Evidence) -> Explanation:
    """Return an explanation that says that the cause is not known, with what is known."""
    return Explanation(state="Unknown", cause=cause, evidence=evidence)


def status_of(explanation: Explanation, subject: ReadOnlyTree | None, unreadable: Sequence[str]) -> Tree:
    """Return the status of an object of the kind Explanation, of limited size."""
    tree: Tree = msgspec.to_builtins(explanation)
    tree = {"state": explanation.state, **tree}
    for field, limit in (
        ("evidence", MAX_ITEMS),
        ("remedies", MAX_ITEMS),
        ("related", MAX_ITEMS),
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


def _shorten(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]} …"
    if isinstance(value, dict):
        return {name: _shorten(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shorten(item) for item in value]
    return value
