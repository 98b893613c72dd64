"""The last writes of each author and of an object, with the fields that they changed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.patch.json_difference import patched
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.history.field_values import ABSENT, FieldChange, changes_of

from .authors import Author, is_component
from .recording import ObjectIdentity

MAX_FIELDS: Final = 6
"""The fields of a write that are named."""
_NOISE: Final = re.compile(
    r"metadata\.generation|.*\.(lastProbeTime|lastTransitionTime|lastUpdateTime|observedGeneration)"
)
"""Fields that change with others, and say nothing of their own."""
_STATUS: Final = "status"


class Writes:
    """The changes of a recording, by object and by author."""

    def __init__(self, changes: Sequence[ReadOnlyTree]) -> None:
        self._by_object: dict[ObjectIdentity, list[ReadOnlyTree]] = {}
        self._by_author: dict[Author, list[ReadOnlyTree]] = {}
        for change in changes:
            self._by_object.setdefault(ObjectIdentity.of_change(change), []).append(change)
            self._by_author.setdefault(Author.of(change), []).append(change)

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
        identity, author = ObjectIdentity.of_change(change), change.get("author") or {}
        fields, omitted = self._fields(change, identity)
        write: Tree = {
            "time": change.get("time", ""),
            "author": str(Author.of(change)),
            "verb": "/".join(filter(None, (author.get("verb", ""), author.get("subresource", "")))),
            "type": change["type"],
            "kind": change["object"]["kind"],
            "namespace": identity.namespace,
            "name": identity.name,
            "key": key_of(identity),
            "revision": change["revision"],
            "fields": fields,
        }
        return write | ({"omittedFields": omitted} if omitted else {})

    def _fields(self, change: ReadOnlyTree, identity: ObjectIdentity) -> tuple[Sequence[str], int]:
        """Return the fields that a write changed, and the number of those that are left out."""
        if change["type"] != "MODIFIED":
            return [], 0
        states = self._states_around(change, identity)
        if states is None:
            return [_operation(each) for each in (change.get("patch") or ())[:MAX_FIELDS]], 0
        found = [each for each in changes_of(*states) if _NOISE.fullmatch(each.path) is None]
        found.sort(key=_is_of_less_interest)
        return [str(each) for each in found[:MAX_FIELDS]], max(0, len(found) - MAX_FIELDS)

    def _states_around(
        self, write: ReadOnlyTree, identity: ObjectIdentity
    ) -> tuple[ReadOnlyTree | None, ReadOnlyTree | None] | None:
        """Return the object before and after a write; None if the history does not begin with its creation."""
        tree: ReadOnlyTree | None = None
        is_known = False
        for change in self._by_object[identity]:
            before = tree
            patch = change.get("patch")
            is_known = patch is not None and (is_known or change["type"] == "ADDED")
            if change["type"] == "ADDED":
                before = None
            tree = patched(before, patch) if is_known and patch is not None else None
            if change is write:
                return (before, tree) if is_known else None
        return None


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
