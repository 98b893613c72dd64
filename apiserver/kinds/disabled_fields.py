"""Fields behind feature gates that are off: what is written of them is dropped, unless the stored object uses them.

A strategy names the fields of each gate by their paths, where `*` is every element of a list or value of a map. The
paths of all gates are made one tree of steps, so that an object is walked once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree, Tree

EACH: Final = "*"


class Gate(NamedTuple):
    """The fields of one gate, each where an object may have it. Who has one of them already may write them all."""

    paths: tuple[str, ...]
    drops_empty: bool = False
    """What has nothing left without the field is dropped with it."""

    def below(self, prefix: str) -> "Gate":
        return self._replace(paths=tuple(f"{prefix}.{path}" for path in self.paths))


class _Place(NamedTuple):
    """Where a field of a gate was found, and what holds it."""

    gate: Gate
    holder: Tree
    field: str
    parent: Any
    key: Any


class DisabledFields:
    """The fields of gates that are off in one kind's objects."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        self.paths = [path for gate in gates for path in gate.paths]
        self._steps: dict[str, Any] = {}
        for gate in gates:
            for path in gate.paths:
                *way, last = path.split(".")
                steps = self._steps
                for step in way:
                    steps = steps.setdefault(step, {})
                steps[last] = gate

    def drop(self, new: Tree, old: ReadOnlyTree | None) -> None:
        """Drop the fields of gates that the old object, if there is one, does not use."""
        found: list[_Place] = []
        _find(new, self._steps, found, None, None)
        if not found:
            return
        used: list[_Place] = []
        if old is not None:
            _find(old, self._steps, used, None, None)
        in_use = {id(place.gate) for place in used}
        for place in found:
            if id(place.gate) not in in_use:
                _drop(place)


NONE_DISABLED: Final = DisabledFields(())


def _find(value: Any, steps: Mapping[str, Any], found: list[_Place], parent: Any, key: Any) -> None:
    for step, inner in steps.items():
        if step == EACH:
            for at, child in _members(value):
                _find(child, inner, found, value, at)
        elif (child := value.get(step)) is not None:
            if inner.__class__ is Gate:
                found.append(_Place(inner, value, step, parent, key))
            else:
                _find(child, inner, found, value, step)


def _members(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if value.__class__ is dict else enumerate(value)


def _drop(place: _Place) -> None:
    del place.holder[place.field]
    if place.gate.drops_empty and not place.holder:
        del place.parent[place.key]
