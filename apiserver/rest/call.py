"""A request for an object or a collection, and its answer, free of any transport."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.resources.spec import Resource, Subresource
from apiserver.storage.stored import Stored, Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who asks, as an authenticator found out."""

    name: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What was sent, as it was sent."""

    data: bytes
    media_type: str = ""


@dataclass(slots=True, kw_only=True)
class Call:
    """One request. `warnings` collects what the client should be told besides the answer."""

    verb: str
    resource: Resource
    subresource: Subresource | None = None
    namespace: str = ""
    name: str = ""
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    body: Body = field(default_factory=lambda: Body(data=b""))
    user: User
    user_agent: str = ""
    warnings: list[str] = field(default_factory=list)

    def parameter(self, name: str) -> str:
        """A parameter of the query; "" if it was not given."""
        values = self.query.get(name)
        return values[0] if values else ""

    def warn(self, text: str) -> None:
        """Tell the client, once, however often the same is found."""
        if text not in self.warnings:
            self.warnings.append(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectAnswer:
    """One object: as stored, or as a tree where it is not stored as it is shown."""

    code: int = 200
    stored: Stored | None = None
    tree: Tree | None = None

    def object(self) -> Tree:
        if self.tree is not None:
            return self.tree
        assert self.stored is not None
        return self.stored.tree()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAnswer:
    """A list: its items as stored, and what its metadata says."""

    api_version: str
    kind: str
    items: Sequence[Stored]
    metadata: Mapping[str, Any]
