"""Fills in a tree of a built-in kind, as the tables say and as upstream's types declare.

For each kind the way to the places where something is filled in is worked out once, from the schema; the rest of a
tree is never looked at. As upstream, a struct comes before those in it. What is filled in stands where Go would write
it, so that the tree stays in normal form. What is filled in is not known here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.schema.model import Schemas, Shape, Type
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.defaults import NOWHERE, Fill, Literals, Steps, round_up
from mockube.apiserver.kinds.registry import NEWEST, Kinds

Visit: TypeAlias = Callable[[Any], None]

_RESOURCE_LIST: Final = "v1.ResourceList"
"""The one map that has defaults as such. It is no definition of OpenAPI, so it goes by its name in Go."""


class Defaulter:
    """Defaults of every built-in kind; the way through each is kept once it is known."""

    def __init__(self, schemas: Schemas, *, clock: Clock, kinds: Kinds = NEWEST) -> None:
        self._schemas = schemas
        self._table = kinds.defaults(clock)
        self._lacks_fields = kinds.minor != NEWEST.minor
        """An older minor may not have what is filled in."""
        self._structs: dict[str, Visit | None] = {}

    def default_object(self, api_version: str, kind: str, tree: Tree) -> None:
        """Fill in a tree in normal form, in place. A kind that is not built in has no defaults here."""
        struct = self._schemas.kind(api_version, kind)
        visit = self._struct(struct) if struct else None
        if visit is not None:
            visit(tree)

    def _struct(self, struct: Type) -> Visit | None:
        name = struct.name
        if name not in self._structs:
            # A struct within itself leads nowhere new. None of those that contain themselves has defaults.
            self._structs[name] = None
            self._structs[name] = self._compile(struct)
        return self._structs[name]

    def _compile(self, struct: Type) -> Visit | None:
        own = self._table.get(struct.name, ())
        if own is NOWHERE:
            return None
        inner = {name: visit for name, field in struct.fields.items() if (visit := self._value(field.type))}
        steps = (*own, *_declared_defaults(struct))
        if steps:
            fills = _make_fills(struct, steps)
            if self._lacks_fields:
                fills = (*fills, _drop_unknown(struct))
            return _visit_struct(fills, inner, list(struct.fields))
        return _descend(inner) if inner else None

    def _value(self, of: Type) -> Visit | None:
        if of.go == _RESOURCE_LIST:
            return round_up
        if of.shape is Shape.STRUCT:
            return self._struct(of)
        if of.shape not in (Shape.LIST, Shape.MAP):
            return None
        visit = self._value(of.items)
        return visit and (_each_item(visit) if of.shape is Shape.LIST else _each_value(visit))


def _declared_defaults(struct: Type) -> Steps:
    """Return the defaults that the struct's schema declares. Zero matters for pointers only, where Go distinguishes it from absent."""
    literals = {
        name: field.default
        for name, field in struct.fields.items()
        if field.default is not None and (field.default or field.pointer)
    }
    return (literals,) if literals else ()


def _make_fills(struct: Type, steps: Steps) -> tuple[Fill, ...]:
    return tuple(_write(struct, step) if isinstance(step, Mapping) else step for step in steps if step)


def _write(struct: Type, literals: Literals) -> Fill:
    rows = tuple(
        (name, value, struct.fields[name].pointer)
        for name, value in literals.items()
        if name in struct.fields  # an older minor may not have it
    )

    def fill(tree: Tree) -> None:
        for name, value, pointer in rows:
            current_value = tree.get(name)
            if current_value is None or not (current_value or pointer):
                tree[name] = value.copy() if isinstance(value, dict | list) else value

    return fill


def _drop_unknown(struct: Type) -> Fill:
    def drop(tree: Tree) -> None:
        for name in tree.keys() - struct.fields.keys():
            del tree[name]

    return drop


def _visit_struct(fills: tuple[Fill, ...], inner: Mapping[str, Visit], fields: list[str]) -> Visit:
    rows = {name: (place, inner.get(name)) for place, name in enumerate(fields)}

    def visit_struct(tree: Tree) -> None:
        for fill in fills:
            fill(tree)
        latest, in_order = -1, True
        for name, value in tree.items():
            place, visit = rows[name]
            if visit is not None and value is not None:
                visit(value)
            if place < latest:
                in_order = False
            latest = place
        if not in_order:
            ordered = sorted(tree.items(), key=lambda item: rows[item[0]][0])
            tree.clear()
            tree.update(ordered)

    return visit_struct


def _descend(inner: Mapping[str, Visit]) -> Visit:
    """Into a struct in which nothing is filled in but further below."""
    rows = tuple(inner.items())

    def descend(tree: Tree) -> None:
        for name, visit in rows:
            value = tree.get(name)
            if value is not None:
                visit(value)

    return descend


def _each_item(visit: Visit) -> Visit:
    def visit_list(items: list[Any]) -> None:
        for item in items:
            visit(item)

    return visit_list


def _each_value(visit: Visit) -> Visit:
    def visit_map(values: dict[str, Any]) -> None:
        for value in values.values():
            visit(value)

    return visit_map
