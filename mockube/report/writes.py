"""The last writes of each author and of an object, with the fields that they changed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.history.authors import verb_of
from mockube.history.field_values import ABSENT, FieldChange, changes_of
from mockube.history.replay import ReplayedObject

from .authors import Author, is_component
from .recording import ObjectIdentity

MAX_FIELDS: Final = 6
"""The fields of a write that are named."""
_NOISE: Final = re.compile(
    r"metadata\.generation|.*\.(lastProbeTime|lastTransitionTime|lastUpdateTime|observedGeneration)"
)
"""Fields that change with others, and say nothing of their own."""
_STATUS: Final = "status"
_KEPT_EACH: Final = 64
"""Of so many states of an object, one is kept."""


class _ObjectHistory:
    """The states of one object: some are kept, from which the others are a few changes away."""

    def __init__(self, changes: Sequence[ReadOnlyTree]) -> None:
        self._changes = changes
        self._places = {id(change): place for place, change in enumerate(changes)}
        self._states: list[ReplayedObject] = []
        state = ReplayedObject()
        for place, change in enumerate(changes):
            if place % _KEPT_EACH == 0:
                self._states.append(state)
            state = state.after(change)

    def around(self, write: ReadOnlyTree) -> tuple[ReplayedObject, ReplayedObject]:
        place = self._places[id(write)]
        state = self._states[place // _KEPT_EACH]
        for change in self._changes[place - place % _KEPT_EACH : place]:
            state = state.after(change)
        return state, state.after(write)


class Writes:
    """The changes of a recording, by object and by author."""

    def __init__(self, changes: Sequence[ReadOnlyTree]) -> None:
        self._by_object: dict[ObjectIdentity, list[ReadOnlyTree]] = {}
        self._by_author: dict[Author, list[ReadOnlyTree]] = {}
        for change in changes:
            self._by_object.setdefault(ObjectIdentity.of_change(change), []).append(change)
            self._by_author.setdefault(Author.of(change), []).append(change)
        self._histories: dict[ObjectIdentity, _ObjectHistory] = {}
        self._described: dict[int, Tree] = {}

    def authors(self) -> Sequence[tuple[Author, int]]:
        """Return the authors with the numbers of their writes: clients before components, those that wrote last first."""
        newest = {author: changes[-1]["revision"] for author, changes in self._by_author.items()}
        order = sorted(newest, key=lambda author: (is_component(author.user), -newest[author], author))
        return [(author, len(self._by_author[author])) for author in order]

    def of_author(self, author: Author, limit: int) -> Sequence[Tree]:
        """Return the last writes of an author, the newest first: those of more than a status before others."""
        changes = self._by_author[author]
        beyond_status = [change for change in changes if not _is_of_status(change)] or changes
        return [self.described(change) for change in reversed(beyond_status[-limit:])]

    def of_objects(self, identities: Iterable[ObjectIdentity], limit: int) -> Sequence[Tree]:
        """Return the last writes of objects, the newest first: what clients want of them, and their last status."""
        changes = [change for identity in identities for change in self._by_object.get(identity, ())]
        of_clients = [change for change in changes if not is_component(Author.of(change).user)]
        others = [change for change in changes if is_component(Author.of(change).user)]
        last_of = {(Author.of(change), ObjectIdentity.of_change(change)): change for change in others}
        newest_first = sorted(of_clients, key=_revision)[::-1][:limit]
        rest = sorted(last_of.values(), key=_revision)[::-1][: limit - len(newest_first)]
        return [self.described(change) for change in sorted([*newest_first, *rest], key=_revision)[::-1]]

    def described(self, change: ReadOnlyTree) -> Tree:
        """Return a write: who, when, to what, and which fields."""
        if id(change) not in self._described:
            self._described[id(change)] = self._describe(change)
        return self._described[id(change)]

    def _describe(self, change: ReadOnlyTree) -> Tree:
        identity, author = ObjectIdentity.of_change(change), change.get("author") or {}
        fields, omitted = self._fields(change, identity)
        write: Tree = {
            "time": change.get("time", ""),
            "author": str(Author.of(change)),
            "verb": verb_of(author),
            "type": change["type"],
            "kind": change["object"]["kind"],
            "namespace": identity.namespace,
            "name": identity.name,
            "key": key_of(identity),
            "revision": change["revision"],
            "fields": fields,
        }
        return write | ({"omittedFields": omitted} if omitted else {})

    def _history(self, identity: ObjectIdentity) -> _ObjectHistory:
        if identity not in self._histories:
            self._histories[identity] = _ObjectHistory(self._by_object[identity])
        return self._histories[identity]

    def _fields(self, change: ReadOnlyTree, identity: ObjectIdentity) -> tuple[Sequence[str], int]:
        """Return the fields that a write changed, and the number of those that are left out."""
        if change["type"] != "MODIFIED":
            return [], 0
        before, after = self._history(identity).around(change)
        if not after.is_known:
            return [_operation(each) for each in (change.get("patch") or ())[:MAX_FIELDS]], 0
        found = [each for each in changes_of(before.tree, after.tree) if _NOISE.fullmatch(each.path) is None]
        found.sort(key=_is_of_less_interest)
        return [str(each) for each in found[:MAX_FIELDS]], max(0, len(found) - MAX_FIELDS)


def key_of(identity: ObjectIdentity) -> str:
    """Return the key by which the page knows an object."""
    return "|".join(identity)


def _revision(change: ReadOnlyTree) -> int:
    return int(change["revision"])


def _is_of_status(change: ReadOnlyTree) -> bool:
    return bool((change.get("author") or {}).get("subresource") == _STATUS)


def _is_of_less_interest(change: FieldChange) -> bool:
    return change.path.startswith((_STATUS, "metadata"))


def _operation(operation: Mapping[str, object]) -> str:
    path = str(operation["path"])[1:].replace("/", ".").replace("~1", "/").replace("~0", "~")
    after = ABSENT if operation["op"] == "remove" else operation["value"]
    return str(FieldChange(path, ABSENT, after))
