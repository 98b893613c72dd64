"""The JSON patch (RFC 6902) that makes one value of another: `add`, `remove` and `replace` of members, in the order of names, and its use.

A list whose length differs is replaced as a whole: which elements are the same is not looked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from mockube.apimachinery import json_pointer
from mockube.apimachinery.tree import ReadOnlyTree, Tree

Patch = list[dict[str, Any]]


def difference(before: Any, after: Any) -> Patch:
    """Return the operations that make `after` of `before`; none if they are equal."""
    return [*_operations("", before, after)]


def _operations(path: str, before: Any, after: Any) -> Iterator[dict[str, Any]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _members(path, before, after)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _operations(f"{path}/{index}", old, new)
    elif type(before) is not type(after) or before != after:  # True is equal to 1
        yield {"op": "replace", "path": path, "value": after}


def _members(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in sorted({*before, *after}):
        member = f"{path}/{json_pointer.escape(name)}"
        if name not in after:
            yield {"op": "remove", "path": member}
        elif name not in before:
            yield {"op": "add", "path": member, "value": after[name]}
        else:
            yield from _operations(member, before[name], after[name])


def patched(before: ReadOnlyTree | None, patch: Sequence[ReadOnlyTree]) -> ReadOnlyTree | None:
    """Return an object with the operations of a difference."""
    root: Tree = {"": orjson.loads(orjson.dumps(before))}
    for operation in patch:
        parts: Sequence[str] = operation["path"].split("/")
        parents, last = ["", *parts[1:]][:-1], parts[-1]
        place: Any = root
        for part in parents:
            place = place[_member(place, part)]
        member = _member(place, last)
        if operation["op"] == "remove":
            del place[member]
        else:
            place[member] = operation["value"]
    result: ReadOnlyTree | None = root.get("")
    return result


def _member(place: Any, part: str) -> Any:
    return int(part) if isinstance(place, list) else json_pointer.unescape(part)
