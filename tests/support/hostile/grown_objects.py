"""Objects of every built-in kind in which one list or map has many members, to find slow validation.

Made from the types: an object has one of everything, and one field of it is grown. A field that two kinds share, such
as those of a container, is grown in the first kind that has it.
"""

import string
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mockube.apimachinery.schema.model import SchemaType, Shape

_PLAIN = {
    Shape.INTEGER: 1,
    Shape.NUMBER: 1,
    Shape.BOOLEAN: True,
    Shape.QUANTITY: "1",
    Shape.INT_OR_STRING: 1,
    Shape.TIME: "2026-01-01T00:00:00Z",
    Shape.MICRO_TIME: "2026-01-01T00:00:00.000000Z",
    Shape.BYTES: "YQ==",
    Shape.ANY: {},
}
_WORDS = {
    "apiVersion": "v1",
    "fieldPath": "metadata.name",
    "ip": "10.0.0.1",
    "addresses": "10.0.0.1",
    "podIP": "10.0.0.1",
    "clusterIP": "10.0.0.1",
    "cidr": "10.0.0.0/8",
    "operator": "Exists",
    "mountPath": "/a",
    "whenUnsatisfiable": "DoNotSchedule",
    "protocol": "TCP",
    "effect": "NoSchedule",
    "restartPolicy": "Always",
}
_DEEPEST = 12
_LETTERS = string.ascii_lowercase


class GrowingObject(NamedTuple):
    """`make(size)` is the object with that many members in the field."""

    field: str
    make: Callable[[int], dict[str, Any]]


def full_example(
    of: SchemaType, name: str = "", *, mark: str = "a", depth: int = _DEEPEST, over: tuple[str, ...] = ()
) -> Any:
    """Return a value with one of everything; a struct does not contain itself. `mark` is in each of its texts."""
    if of.shape is Shape.STRING:
        return _WORDS.get(name, mark) if mark == "a" else _text(name, mark)
    if of.shape in _PLAIN:
        return _PLAIN[of.shape]
    if of.shape is Shape.LIST:
        item = full_example(of.items, name, mark=mark, depth=depth - 1, over=over) if depth else None
        return [] if item is None else [item]
    if of.shape is Shape.MAP:
        item = full_example(of.items, name, mark=mark, depth=depth - 1, over=over) if depth else None
        return {} if item is None else {mark: item}
    if not depth or of.name in over:
        return None
    inner = {
        field: full_example(kind.type, field, mark=mark, depth=depth - 1, over=(*over, of.name))
        for field, kind in of.fields.items()
    }
    return {field: value for field, value in inner.items() if value is not None}


def _text(name: str, mark: str) -> str:
    number = int(mark, 36) if mark.isalnum() else 0
    if name in ("ip", "addresses", "podIP", "hostIP"):
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    if name in ("mountPath", "devicePath"):
        return f"/{mark}"
    return _WORDS.get(name, mark) if name in ("operator", "protocol", "effect", "whenUnsatisfiable") else mark


def _mark(number: int) -> str:
    """Return a number in base 36 that begins with a letter: valid in most names."""
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"a{digits:0>5}"


def growing(of: SchemaType, seen: set[tuple[str, str]], base: Any = None) -> Iterator[GrowingObject]:
    """Yield an object for each list and map of an unseen type: with distinct members, and with equal ones."""
    base = full_example(of) if base is None else base
    for path, field in _fields(of, (), ()):
        owner, name = path[-1]
        if (owner, name) in seen:
            continue
        seen.add((owner, name))
        steps = tuple(step for _, step in path)
        for way, is_distinct in (("distinct", True), ("equal", False)):
            if field.shape is Shape.MAP and not is_distinct:
                continue
            yield GrowingObject(
                f"{'.'.join(steps)} {way}",
                lambda size, steps=steps, field=field, is_distinct=is_distinct: _with_value_at(
                    base, steps, _many_items(field, steps[-1], size, is_distinct=is_distinct)
                ),
            )


def growing_together(of: SchemaType, seen: set[str], base: Any = None) -> Iterator[GrowingObject]:
    """Yield an object for each unseen struct with several lists and maps, all of which have many members.

    Members of different fields are equal, or none of one field is in another one.
    """
    base = full_example(of) if base is None else base
    structs: dict[tuple[str, ...], list[tuple[str, SchemaType]]] = {}
    for path, field in _fields(of, (), ()):
        if path[-1][0] not in seen:
            structs.setdefault(tuple(step for _, step in path[:-1]), []).append((path[-1][1], field))
    for steps, fields in structs.items():
        for way, distance in (("equal", 0), ("disjoint", 100_000)):
            yield GrowingObject(
                f"{'.'.join(steps)} all {way}",
                lambda size, steps=steps, fields=fields, distance=distance: _with_values_at(
                    base, steps, fields, size, distance
                ),
            )
    seen.update(path[-1][0] for path, _ in _fields(of, (), ()))


def _with_values_at(
    tree: Any, steps: tuple[str, ...], fields: list[tuple[str, SchemaType]], size: int, distance: int
) -> Any:
    for index, (name, field) in enumerate(fields):
        items = _many_items(field, name, size, is_distinct=True, first=index * distance)
        tree = _with_value_at(tree, (*steps, name), items)
    return tree


def _fields(of: SchemaType, path: tuple[tuple[str, str], ...], over: tuple[str, ...]) -> Iterator[Any]:
    if of.shape in (Shape.LIST, Shape.MAP):
        yield from _fields(of.items, path, over)
    if of.shape is not Shape.STRUCT or of.name in over:
        return
    for name, field in of.fields.items():
        here = (*path, (of.name, name))
        if field.type.shape in (Shape.LIST, Shape.MAP):
            yield here, field.type
        yield from _fields(field.type, here, (*over, of.name))


def _many_items(of: SchemaType, name: str, size: int, *, is_distinct: bool, first: int = 0) -> Any:
    numbers = range(first, first + size)
    if of.shape is Shape.MAP:
        return {_mark(number): full_example(of.items, name, depth=2) for number in numbers}
    if not is_distinct:
        return [full_example(of.items, name, depth=2)] * size
    return [full_example(of.items, name, mark=_mark(number), depth=2) for number in numbers]


def _with_value_at(tree: Any, steps: tuple[str, ...], value: Any) -> Any:
    """Return the tree with a value at a path, which leads through first elements; other parts are shared."""
    if not steps:
        return value
    if isinstance(tree, list):
        return [_with_value_at(tree[0] if tree else {}, steps, value)]
    first, *rest = steps
    if isinstance(tree, dict) and first not in tree and tree and all(len(key) == 1 for key in tree):
        key = next(iter(tree))
        return {key: _with_value_at(tree[key], steps, value)}
    return {**(tree or {}), first: _with_value_at((tree or {}).get(first) or {}, tuple(rest), value)}
