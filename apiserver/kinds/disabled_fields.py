"""Fields behind feature gates that are off: what is written of them is dropped, unless the stored object uses them.

A strategy names the fields of each gate by their paths, where `*` is every element of a list or value of a map. The
paths of all gates are made one tree of steps, so that an object is walked once.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from mockube.apimachinery.tree import ReadOnlyTree, Tree

EACH: Final = "*"


class Gate(NamedTuple):
    """The paths of one gate's fields. An object that has one of them already may use all of them."""

    paths: tuple[str, ...]
    drops_empty: bool = False
    """A struct that is empty without the field is dropped with it."""

    def with_prefix(self, prefix: str) -> "Gate":
        return self._replace(paths=tuple(f"{prefix}.{path}" for path in self.paths))


class _Field(NamedTuple):
    """A field on the way to those of gates, or, with its gate, one of them."""

    gate: Gate | None
    inner: "_Fields"
    is_collection: bool
    """Whether `inner` are the fields of each element of a list or value of a map."""


_Fields: TypeAlias = Sequence[tuple[str, _Field]]
"""The fields of a struct with their names."""


class _FieldUse(NamedTuple):
    """The place of a gate's field in an object, and the struct that contains it."""

    gate: Gate
    holder: Tree
    field: str
    parent: Any
    key: Any


class DisabledFields:
    """The fields of gates that are off in one kind's objects."""

    def __init__(self, gates: Sequence[Gate]) -> None:
        self.gates = tuple(gates)
        self.paths = [path for gate in gates for path in gate.paths]
        steps: dict[str, Any] = {}
        for gate in gates:
            for path in gate.paths:
                *way, last = path.split(".")
                inner = steps
                for step in way:
                    inner = inner.setdefault(step, {})
                inner[last] = gate
        self._fields = _compile(steps)

    def drop(self, new: Tree, old: ReadOnlyTree | None) -> None:
        """Drop the fields of gates that the old object, if there is one, does not use."""
        if not self._fields:
            return
        uses: list[_FieldUse] = []
        _find(new, self._fields, uses, None, None)
        if not uses:
            return
        used: list[_FieldUse] = []
        if old is not None:
            _find(old, self._fields, used, None, None)
        in_use = {id(use.gate) for use in used}
        for use in uses:
            if id(use.gate) not in in_use:
                _drop(use)


def _compile(steps: Mapping[str, Any]) -> _Fields:
    fields = []
    for name, below in steps.items():
        if isinstance(below, Gate):
            fields.append((name, _Field(below, (), is_collection=False)))
        else:
            is_collection = EACH in below
            inner = _compile(below[EACH] if is_collection else below)
            fields.append((name, _Field(None, inner, is_collection)))
    return fields


def _find(value: Any, fields: _Fields, uses: list[_FieldUse], parent: Any, key: Any) -> None:
    for name, (gate, inner, is_collection) in fields:
        child = value.get(name)
        if child is None:
            continue
        if gate is not None:
            uses.append(_FieldUse(gate, value, name, parent, key))
        elif is_collection:
            for at, member in _members(child):
                _find(member, inner, uses, child, at)
        else:
            _find(child, inner, uses, value, name)


def _members(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if value.__class__ is dict else enumerate(value)


def _drop(use: _FieldUse) -> None:
    del use.holder[use.field]
    if use.gate.drops_empty and not use.holder:
        del use.parent[use.key]


NONE_DISABLED: Final = DisabledFields(())
