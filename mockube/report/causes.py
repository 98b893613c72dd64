"""Which objects are not healthy because of the same: those whose explanations name one field, or one another. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

from .authors import rank_of
from .recording import ObjectIdentity, Recording

_PODS: Final = "Pod"
_RANKS: Final = {_PODS: 1}
"""The kinds that come last: their owners say more."""
_NUMBER: Final = re.compile(r"[0-9]+")
_WORD: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_VARYING: Final = re.compile(
    r"(?<=-)(?:\d+|[bcdf-hj-np-tv-z2456789]{5,10})\b"  # what generated names end with: an ordinal, or random characters
    r"|\b\d+(?:\.\d+){3}\b"  # an address
    r"|\b\d+(?: times| of \d+)\b"  # a count
)
"""What differs in the causes of objects with the same mistake; other numbers are exit codes, ports and sizes, which are the mistake."""
_DIGITS: Final = 10
_USERS: Final = 1
"""The highest rank of an author that is no part of the control plane."""
_Place: TypeAlias = tuple[str, str, str]
"""The kind, the namespace and the name of an object."""


class Cause(Struct, frozen=True, kw_only=True):
    """A cause, by the explanation of the object that is nearest to it."""

    status: ReadOnlyTree
    origins: Sequence[ReadOnlyTree] = ()
    """The fields that it names: those of that explanation, and what users changed of those of the others."""
    others: Sequence[_Place] = ()
    """The other objects that are not healthy because of it, pods last."""

    @property
    def is_of_user(self) -> bool:
        """Whether a user wrote a field that it names."""
        return any(map(users_writes, self.origins))


def users_writes(origin: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    """Return the writes of an origin that are those of people, or of programs with accounts of their own."""
    return [write for write in origin.get("writes", ()) if rank_of(write.get("user", "")) <= _USERS]


def _is_changed(origin: ReadOnlyTree) -> bool:
    """Return whether a user changed a field, or deleted its object, and did not only create it."""
    return any(write["type"] != "ADDED" for write in users_writes(origin))


def causes_of(recording: Recording) -> Sequence[Cause]:
    """Return the causes of what is not healthy: first what users changed, then what they created; of these, those of most objects first."""
    explanations = recording.explanations
    by_place = _indexes(explanations, recording.similar)
    groups: dict[tuple[object, ...], list[int]] = {}
    for index in range(len(explanations)):
        groups.setdefault(_key(index, explanations, by_place), []).append(index)
    found = [_cause([explanations[index] for index in group], recording.similar) for group in groups.values()]
    return sorted(found, key=_importance)


def _importance(cause: Cause) -> tuple[bool, bool, int]:
    return not any(map(_is_changed, cause.origins)), not cause.is_of_user, -len(cause.others)


def _indexes(
    explanations: Sequence[ReadOnlyTree], similar: Mapping[ObjectIdentity, Sequence[ObjectIdentity]]
) -> Mapping[_Place, int]:
    """Return the explanation of each object, also of those in the same state."""
    indexes = {_place(status["object"]): index for index, status in enumerate(explanations)}
    for identity, others in similar.items():
        index = indexes[(_PODS, identity.namespace, identity.name)]
        indexes.update(dict.fromkeys(((_PODS, each.namespace, each.name) for each in others), index))
    return indexes


def _key(
    index: int, explanations: Sequence[ReadOnlyTree], by_place: Mapping[_Place, int]
) -> tuple[object, ...]:
    """Return what explanations of one cause share: the field that they name first, or the object that they follow from."""
    status = explanations[index]
    for origin in status.get("origins", ())[:1]:
        if _is_changed(origin):
            return _field(origin)
        if origin["object"]["name"] == status["object"]["name"]:
            return _as_created(status, origin)
        named = explanations[by_place.get(_place(origin["object"]), index)]
        is_same = named is not status and [*map(_field, named.get("origins", ())[:1])] == [_field(origin)]
        return _as_created(named, origin) if is_same else _field(origin)
    for related in status.get("related", ()):
        other = by_place.get(_place(related["object"]), index)
        cause = explanations[other]["cause"]
        if len(cause) < len(status["cause"]) and cause in status["cause"]:
            return _key(other, explanations, by_place)
    return (index,)


def _as_created(status: ReadOnlyTree, origin: ReadOnlyTree) -> tuple[object, ...]:
    """Return what objects share that were created with the same mistake, such as pods without a controller."""
    kind, namespace, name = _place(status["object"])
    cause = _VARYING.sub("", _WORD.sub(lambda word: "" if word[0] == name else word[0], status["cause"]))
    users = [write.get("user", "") for write in origin.get("writes", ())]
    return kind, namespace, origin.get("field", ""), cause, *users


def _cause(
    statuses: Sequence[ReadOnlyTree], similar: Mapping[ObjectIdentity, Sequence[ObjectIdentity]]
) -> Cause:
    nearest = min(statuses, key=lambda status: len(status["cause"]))  # that of an owner repeats it
    by_pod = {(_PODS, each.namespace, each.name): others for each, others in similar.items()}
    places = [_place(status["object"]) for status in statuses]
    alike = [(_PODS, each.namespace, each.name) for place in places for each in by_pod.get(place, ())]
    others = [place for place in (*places, *alike) if place != _place(nearest["object"])]
    origins = {_field(each): each for each in nearest.get("origins", ())}
    for status in statuses:
        for origin in filter(_is_changed, status.get("origins", ())):
            origins.setdefault(_field(origin), origin)
    return Cause(status=nearest, origins=[*origins.values()], others=sorted(others, key=_order))


def _field(origin: ReadOnlyTree) -> tuple[str, ...]:
    return (*_place(origin["object"]), origin["object"].get("apiVersion", ""), origin.get("field", ""))


def _order(place: _Place) -> tuple[object, ...]:
    """Return a key for the natural order: web-2 comes before web-10."""
    kind, namespace, name = place
    return _RANKS.get(kind, 0), kind, namespace, _NUMBER.sub(lambda number: number[0].zfill(_DIGITS), name)


def _place(subject: ReadOnlyTree) -> _Place:
    return subject.get("kind", ""), subject.get("namespace", ""), subject.get("name", "")
