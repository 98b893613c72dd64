"""Changes of one field of an object by somebody else: which fields there are, with which other values, and whether the operator has set one."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import json_pointer, meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import AnyResource, Key
from mockube.client.verbs import Client

MAX_TRIES: Final = 10
"""So many fields of an object are tried, until a change of one is accepted."""
_CONTENTS: Final = (("spec",), ("data",), ("stringData",), ("rules",), ("subjects",), ("webhooks",))
_LABELS: Final = ("metadata", "labels")
_FIRST: Final = ("jobTemplate", "template", "image", "schedule", "ports", "port")
"""The names of fields that operators set themselves."""
_LAST: Final = "replicas"
"""Other ones may scale what an operator has made."""

FieldPath = tuple[str | int, ...]


class FieldEdit(Struct, frozen=True, kw_only=True):
    """A field with its value, and another value of the same type."""

    path: FieldPath
    before: Any
    after: Any
    is_confidential: bool = False
    """Whether it is a value of a Secret, which nobody should see."""

    @property
    def field(self) -> str:
        return ".".join(map(str, self.path))

    def __str__(self) -> str:
        return f"{self.field} is set to {'another value' if self.is_confidential else repr(self.after)}"


class NotEditable(Exception):
    """No change of a field of the object is accepted; the message has the reason for the last one."""


def field_edits(tree: ReadOnlyTree) -> Iterator[FieldEdit]:
    """Yield an edit of each field of an object, first of those that operators set themselves."""
    is_secret = (meta.api_version(tree), meta.kind(tree)) == ("v1", "Secret")
    for path in (*_CONTENTS, _LABELS):
        is_encoded = is_secret and path == ("data",)
        for found, value in _leaves(_value_at(tree, path), path):
            yield FieldEdit(
                path=found,
                before=value,
                after=_other(value, is_encoded=is_encoded),
                is_confidential=is_secret and path != _LABELS,
            )


def _leaves(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any]]:
    if isinstance(value, Mapping):
        for name in sorted(value, key=_preference):
            yield from _leaves(value[name], (*path, name))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _leaves(member, (*path, index))
    elif isinstance(value, bool | int | str):
        yield path, value


def _preference(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST) + (name == _LAST), name)


def _other(value: Any, *, is_encoded: bool) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    text = f"{value}-edited"
    return base64.b64encode(text.encode()).decode() if is_encoded else text


async def edit_field(client: Client, resource: AnyResource, key: Key) -> FieldEdit:
    """Change the first field of an object that is no default of the server and that may be changed, and return how.

    An operator that sets only its fields rightly leaves the defaults to whoever changes them.
    """
    tree = {"apiVersion": resource.api_version, "kind": resource.kind, **await client.get(resource, key)}
    problem, tries = "it has no field to change", 0
    for edit in field_edits(tree):
        if tries == MAX_TRIES:
            break
        if await _is_default(client, resource, key, edit):
            continue
        tries += 1
        patch = {"op": "replace", "path": _pointer(edit.path), "value": edit.after}
        try:
            changed = await client.patch(resource, key, [patch], kind="json")
        except ApiError as error:
            problem = error.message
            continue
        if _value_at(changed, edit.path) != edit.before:
            return edit
    raise NotEditable(problem)


async def _is_default(client: Client, resource: AnyResource, key: Key, edit: FieldEdit) -> bool:
    """Return whether the server sets a field to the same value if it is removed."""
    removal = {"op": "remove", "path": _pointer(edit.path)}
    try:
        tree = await client.patch(resource, key, [removal], kind="json", dry_run=True)
    except ApiError:  # it is required, or may not be removed: somebody has set it
        return False
    return bool(_value_at(tree, edit.path) == edit.before)


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{json_pointer.escape(str(part))}" for part in path)


def _value_at(tree: ReadOnlyTree, path: Sequence[str | int]) -> Any:
    """Return a value, or None if there is none."""
    value: Any = tree
    for part in path:
        if isinstance(value, list) and isinstance(part, int):
            value = value[part] if part < len(value) else None
        elif isinstance(value, Mapping):
            value = value.get(part)
        else:
            return None
    return value
