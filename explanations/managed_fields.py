"""Who set a field of an object, as its managedFields say: where the history does not reach that far. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

from .facts import NOT_SET, FieldPath, Member, is_member_named, value_at

SOURCE: Final = "managedFields"
_NO_FIELDS: Final[Mapping[str, Any]] = {}


def managed_writes(obj: ReadOnlyTree, path: FieldPath) -> Sequence[ReadOnlyTree]:
    """Return the writes of the managers that own a field of an object, the newest first; of a whole object, without its status.

    They lack the user and the value before.
    """
    value = value_at(obj, path)
    if value is NOT_SET:
        return ()
    writes = [_write(entry, path, value) for entry in _owners(obj, path)]
    return sorted(writes, key=lambda write: str(write["time"]), reverse=True)


def _owners(obj: ReadOnlyTree, path: FieldPath) -> Iterator[ReadOnlyTree]:
    for entry in meta.metadata(obj).get("managedFields") or ():
        is_of_status = not path and entry.get("subresource") == "status"
        if not is_of_status and _owns(entry.get("fieldsV1") or _NO_FIELDS, path):
            yield entry


def _owns(fields: Mapping[str, Any], path: FieldPath) -> bool:
    """Return whether a set of fields has one, a part of it, or one that has it as a whole."""
    for step in path:
        if isinstance(step, Member):
            key = next((key for key in fields if _is_key_of(key, step.name)), "")
        else:
            key = f"f:{step}"
        if key not in fields:
            return False
        fields = fields[key]
        if not fields:
            return True
    return True


def _is_key_of(key: str, name: str) -> bool:
    return key.startswith("k:") and is_member_named(orjson.loads(key.removeprefix("k:")), name)


def _write(entry: ReadOnlyTree, path: FieldPath, value: Any) -> ReadOnlyTree:
    author = {"manager": entry.get("manager") or "", "verb": (entry.get("operation") or "").lower()}
    if entry.get("subresource"):
        author["subresource"] = entry["subresource"]
    write = {
        "revision": 0,
        "type": "MODIFIED",
        "time": entry.get("time") or "",
        "author": author,
        "source": SOURCE,
    }
    return {**write, "after": value} if path else write
