"""Which objects are not healthy because of the same: those whose explanations name one field, or one another. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree

from .recording import ObjectIdentity, Recording

_PODS: Final = "Pod"
_RANKS: Final = {_PODS: 1}
"""The kinds that come last: their owners say more."""
_NUMBER: Final = re.compile(r"[0-9]+")
_DIGITS: Final = 10
_Place: TypeAlias = tuple[str, str, str]
"""The kind, the namespace and the name of an object."""


class Cause(Struct, frozen=True, kw_only=True):
    """A cause, by the explanation of the object that is nearest to it."""

    status: ReadOnlyTree
    others: Sequence[_Place] = ()
    """The other objects that are not healthy because of it, pods last."""


def causes_of(recording: Recording) -> Sequence[Cause]:
    """Return the causes of what is not healthy: those of most objects first, and others in the order of their objects."""
    explanations = recording.explanations
    by_place = _indexes(explanations, recording.similar)
    groups: dict[tuple[object, ...], list[int]] = {}
    for index in range(len(explanations)):
        groups.setdefault(_key(index, explanations, by_place), []).append(index)
    found = [_cause([explanations[index] for index in group], recording.similar) for group in groups.values()]
    return sorted(found, key=lambda cause: -len(cause.others))


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
        return (*_place(origin["object"]), origin["object"].get("apiVersion", ""), origin.get("field", ""))
    for related in status.get("related", ()):
        other = by_place.get(_place(related["object"]), index)
        cause = explanations[other]["cause"]
        if len(cause) < len(status["cause"]) and cause in status["cause"]:
            return _key(other, explanations, by_place)
    return (index,)


def _cause(
    statuses: Sequence[ReadOnlyTree], similar: Mapping[ObjectIdentity, Sequence[ObjectIdentity]]
) -> Cause:
    nearest = min(statuses, key=lambda status: len(status["cause"]))  # that of an owner repeats it
    by_pod = {(_PODS, each.namespace, each.name): others for each, others in similar.items()}
    places = [_place(status["object"]) for status in statuses]
    alike = [(_PODS, each.namespace, each.name) for place in places for each in by_pod.get(place, ())]
    others = [place for place in (*places, *alike) if place != _place(nearest["object"])]
    return Cause(status=nearest, others=sorted(others, key=_order))


def _order(place: _Place) -> tuple[object, ...]:
    """Return a key for the natural order: web-2 comes before web-10."""
    kind, namespace, name = place
    return _RANKS.get(kind, 0), kind, namespace, _NUMBER.sub(lambda number: number[0].zfill(_DIGITS), name)


def _place(subject: ReadOnlyTree) -> _Place:
    return subject.get("kind", ""), subject.get("namespace", ""), subject.get("name", "")
