"""The last writes of each user and of an object, with the fields that they changed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.history.authors import verb_of
from mockube.history.field_values import ABSENT, FieldChange, changes_of
from mockube.history.replay import ReplayedObject

from .authors import Author, is_component_author, rank_of
from .recording import ObjectIdentity

MAX_FIELDS: Final = 6
"""The fields of a write that are named."""
MAX_NAMES: Final = 20
"""The objects of writes that are alike."""
MAX_PROGRAMS: Final = 3
"""The programs of a user that are named."""
_NOISE: Final = re.compile(
    r"metadata\.(generation|deletionTimestamp|deletionGracePeriodSeconds)|.*\.(lastProbeTime|lastTransitionTime|lastUpdateTime|observedGeneration)"
)
"""Fields that change with others, and say nothing of their own."""
_STATUS: Final = "status"
_ADDRESSES: Final = "ipaddresses.networking.k8s.io"
"""What a server creates for each Service, as the user of that."""
_KEPT_EACH: Final = 64
"""Of so many states of an object, one is kept."""


_UNKNOWN: Final = "unknown"
"""The manager of fields that a server wrote for a client without a name."""
_WHOLE_VERBS: Final = re.compile("delete|deletecollection|create/eviction")
"""The verbs that say what is written, whatever fields that are."""


class WritesOfUser(Struct, frozen=True, kw_only=True):
    """A user who wrote, the programs with which that was, the newest first, and how many writes there are."""

    user: str
    programs: Sequence[str]
    count: int

    def __str__(self) -> str:
        return str(Author(self.user, ", ".join(self.programs)))


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
    """The changes of a recording, by object and by user."""

    def __init__(self, changes: Sequence[ReadOnlyTree]) -> None:
        self._by_object: dict[ObjectIdentity, list[ReadOnlyTree]] = {}
        self._by_user: dict[str, list[ReadOnlyTree]] = {}
        for change in changes:
            self._by_object.setdefault(ObjectIdentity.of_change(change), []).append(change)
            self._by_user.setdefault(Author.of(change).user, []).append(change)
        self._histories: dict[ObjectIdentity, _ObjectHistory] = {}
        self._described: dict[int, Tree] = {}

    def authors(self) -> Sequence[WritesOfUser]:
        """Return who wrote: people, programs of users, and the control plane, and of these those that wrote last first."""
        newest = {user: changes[-1]["revision"] for user, changes in self._by_user.items()}
        order = sorted(newest, key=lambda user: (rank_of(user), -newest[user], user))
        return [self._of_user(user) for user in order]

    def _of_user(self, user: str) -> WritesOfUser:
        changes = self._by_user[user]
        programs = dict.fromkeys(Author.of(change).program.partition("/")[0] for change in reversed(changes))
        known = [each for each in programs if each not in ("", _UNKNOWN, user)]
        return WritesOfUser(user=user, programs=known[:MAX_PROGRAMS], count=len(changes))

    def of_user(self, user: str, limit: int) -> Sequence[Tree]:
        """Return the last writes of a user, the newest first: those of more than a status before others, those that are alike as one."""
        changes = self._by_user[user]
        beyond_status = [change for change in changes if not _is_minor(change)] or changes
        groups: list[list[ReadOnlyTree]] = []
        for change in reversed(beyond_status):
            group = next((each for each in groups[-1:] if _is_alike(each, change)), None)
            if group is not None:
                group.append(change)
            elif len(groups) == limit:
                break
            else:
                groups.append([change])
        return [self._described_together(group) for group in groups]

    def _described_together(self, changes: Sequence[ReadOnlyTree]) -> Tree:
        """Return the newest of some writes that are alike, and the names of the objects of the others."""
        others = {ObjectIdentity.of_change(change): None for change in changes[1:]}
        others.pop(ObjectIdentity.of_change(changes[0]), None)
        write = self.described(changes[0])
        if not others:
            return write
        return {**write, "others": [each.name for each in others][:MAX_NAMES], "othersCount": len(others)}

    def of_objects(
        self, identities: Iterable[ObjectIdentity], limit: int, of_components: int
    ) -> Sequence[Tree]:
        """Return the last writes of objects, the newest first: what clients want of them, and their last status."""
        changes = [change for identity in identities for change in self._by_object.get(identity, ())]
        of_clients = [change for change in changes if not is_component_author(Author.of(change).user)]
        others = [change for change in changes if is_component_author(Author.of(change).user)]
        last_of = {(Author.of(change), ObjectIdentity.of_change(change)): change for change in others}
        newest_first = sorted(of_clients, key=_revision)[::-1][:limit]
        rest = sorted(last_of.values(), key=_revision)[::-1][: min(limit - len(newest_first), of_components)]
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


def _is_minor(change: ReadOnlyTree) -> bool:
    """Return whether a server wrote an object for another one, or a write changed a status only, as an eviction does before it deletes."""
    if (
        change["object"]["resource"] == _ADDRESSES
        or (change.get("author") or {}).get("subresource") == _STATUS
    ):
        return True
    patch = change.get("patch") or ()
    return change["type"] == "MODIFIED" and bool(patch) and all(map(_is_status_operation, patch))


def _is_status_operation(operation: Mapping[str, object]) -> bool:
    return str(operation["path"]).startswith(f"/{_STATUS}")


def _is_alike(group: Sequence[ReadOnlyTree], change: ReadOnlyTree) -> bool:
    """Return whether a write is one more of a group of the same command: evictions of a drain, or the same patch of other objects."""
    if _shape(group[0]) != _shape(change):
        return False
    is_whole = _WHOLE_VERBS.fullmatch(verb_of(change.get("author") or {})) is not None
    return is_whole or all(each["object"]["name"] != change["object"]["name"] for each in group)


def _shape(change: ReadOnlyTree) -> tuple[object, ...]:
    verb, subject = verb_of(change.get("author") or {}), change["object"]
    if _WHOLE_VERBS.fullmatch(verb):
        return verb, subject["resource"]
    paths = (each["path"] for each in change.get("patch") or ())
    return (verb, subject["resource"], subject.get("namespace", ""), change["type"], *paths)


def _is_of_less_interest(change: FieldChange) -> bool:
    return change.path.startswith((_STATUS, "metadata"))


def _operation(operation: Mapping[str, object]) -> str:
    path = str(operation["path"])[1:].replace("/", ".").replace("~1", "/").replace("~0", "~")
    after = ABSENT if operation["op"] == "remove" else operation["value"]
    return str(FieldChange(path, ABSENT, after))
