"""Fields of an object as a client sent them: empty collections, and fields that are stored as the bytes that were sent.

Stored objects do not have empty lists and maps, but Go's errors show those that were sent.

Raw fields, such as the data of a ControllerRevision, are compared as bytes, so the format of the request matters: a JSON
body is stored as it is, a JSON patch is applied to text without blanks, and all other formats are encoded again with sorted
keys.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import orjson

from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.gonumbers import with_go_numbers
from mockube.apimachinery.patch import json_merge
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.schema.model import SchemaType, Shape
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import Tree, sorted_keys
from mockube.apiserver.kinds.common.checks import IMMUTABLE
from mockube.apiserver.patch import json_patch
from mockube.apiserver.schema import lossless_json
from mockube.apiserver.storage.stored_object import canonical
from mockube.apiserver.wire.negotiation import MediaType, parse_media_type, patch_media_type

from .body import has_sent_empty, is_empty, sent_tree
from .request_context import APPLY_TYPES
from .write import Write

Check: TypeAlias = Callable[[Tree], Sequence[FieldError]]


def check_with_empty_collections(
    write: Write, field_errors: Sequence[FieldError], check: Check
) -> Sequence[FieldError]:
    """Return the errors of the new object with the empty collections that were sent, if they are the same errors."""
    with_empty = _with_empty(write.new, sent_tree(write.context.body, write.patched))
    if with_empty is write.new:
        return field_errors
    new_errors = check(with_empty)
    if _places(new_errors) != _places(field_errors):
        rest = [error for error in new_errors if not _refuses_any_value(error)]
        more = _places(rest) == _places([error for error in field_errors if not _refuses_any_value(error)])
        return new_errors if more else field_errors
    return [
        old if _is_api_struct(new.value) else new for old, new in zip(field_errors, new_errors, strict=True)
    ]


def with_sent_empty(write: Write, paths: Sequence[Sequence[str]]) -> Tree:
    """Return the new object with those collections at some paths that were sent empty; itself if there are none."""
    tree = write.new
    for path in paths:
        if _at(tree, path) is None and has_sent_empty(write.context.body, write.patched, *path):
            tree = _with_value(tree, path, _at(sent_tree(write.context.body, write.patched), path))
    return tree


def with_exact_times(write: Write, tree: Tree, paths: Sequence[Sequence[str]]) -> Tree:
    """Return the tree with those times at some paths that are not stored as they were sent.

    They have a fraction of a second, or are zero: upstream has a pointer to a zero time, where the store has nothing.
    """
    body = write.context.body
    if not paths or not any(mark in body.data for mark in (b".", ZERO_TIME.encode())):
        return tree
    for path in paths:
        sent = _at(sent_tree(body, write.patched), path)
        if not isinstance(sent, str) or _at(tree, path) not in (format_time(parse_time(sent)), None):
            continue
        if "." in sent or sent == ZERO_TIME:
            tree = _with_value(tree, path, sent)
    return tree


ZERO_TIME: Final = "0001-01-01T00:00:00Z"


def _at(tree: Any, path: Sequence[str]) -> Any:
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _with_value(tree: Tree, path: Sequence[str], value: Any) -> Tree:
    """Return a tree with a value at a path; itself if it has nothing to which the value belongs."""
    name, *rest = path
    if not rest:
        return tree | {name: value}
    inner = tree.get(name)
    return tree | {name: _with_value(inner, rest, value)} if isinstance(inner, dict) else tree


def has_more_empty(write: Write, of: SchemaType, tree: Tree, names: Sequence[str]) -> bool:
    """Return whether a client sent empty collections or bytes in some of an object's fields that the object does not have."""
    sent = sent_tree(write.context.body, write.patched)
    return isinstance(sent, dict) and _has_more_empty(
        of, tree, {name: sent[name] for name in names if name in sent}
    )


def _has_more_empty(of: SchemaType, tree: Any, sent: Any) -> bool:
    if of.shape is Shape.STRUCT and isinstance(tree, dict) and isinstance(sent, dict):
        members = [
            (of.fields[name].type, tree.get(name), item) for name, item in sent.items() if name in of.fields
        ]
        return any(_is_missing(*member) or _has_more_empty(*member) for member in members)
    if (
        of.shape is Shape.LIST
        and isinstance(tree, list)
        and isinstance(sent, list)
        and len(tree) == len(sent)
    ):
        return any(_has_more_empty(of.items, *pair) for pair in zip(tree, sent, strict=True))
    return False


def _is_missing(of: SchemaType, value: Any, sent: Any) -> bool:
    if of.shape is Shape.BYTES:
        return value is None and sent == ""
    return of.shape in (Shape.LIST, Shape.MAP) and not value and is_empty(sent) and value != sent


def _is_api_struct(value: Any) -> bool:
    """Return whether errors print a value with the names of the API, omitting empty fields, instead of Go's names."""
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, dict) and bool(value) and not next(iter(value))[:1].isupper()


def _refuses_any_value(error: FieldError) -> bool:
    """Return whether an error refuses any value of a field, such as an empty list."""
    return error.type is ErrorType.FORBIDDEN and error.detail.endswith(_ANY_VALUE)


_ANY_VALUE: Final = (
    "cannot be set",
    "cannot be set for an Ephemeral Container",
    "claims may not be set for Resources at pod-level",
)


def _places(field_errors: Sequence[FieldError]) -> list[tuple[str, object]]:
    return [(error.field, error.type) for error in field_errors]


def _with_empty(tree: Any, sent: Any) -> Any:
    """Return the value with the empty collections of what was sent where it has nothing; itself if there are none."""
    if isinstance(tree, dict) and isinstance(sent, dict):
        added = {name: value for name, value in sent.items() if is_empty(value) and tree.get(name) is None}
        inner = {name: _with_empty(value, sent[name]) for name, value in tree.items() if name in sent}
        changed = {name: value for name, value in inner.items() if value is not tree[name]}
        return tree | added | changed if added or changed else tree
    if isinstance(tree, list) and isinstance(sent, list) and len(tree) == len(sent):
        items = [_with_empty(*pair) for pair in zip(tree, sent, strict=True)]
        return items if any(new is not old for new, old in zip(items, tree, strict=True)) else tree
    return tree


# --- raw fields

_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SERVER_FIELDS: Final = ("managedFields", "resourceVersion")
_PATCHES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "application/json-patch+json": json_patch.apply,
    "application/merge-patch+json": json_merge.apply,
}


def stored_text(value: bytes, name: str) -> bytes:
    """Return the text of a field of a stored object; "" if it has none."""
    return bytes(_MEMBERS.decode(value).get(name, b""))


def sent_text(write: Write, name: str) -> bytes:
    """Return the text of a field of the new object as upstream stores it."""
    tree, stored = write.new, write.stored
    if tree.get(name) is None:
        return b""
    media_type = _media_type(write)
    if (
        media_type in APPLY_TYPES
        and stored is not None
        and _without_managers(tree) == _without_managers(stored.tree())
    ):
        return stored_text(stored.value, name)  # only managers were changed
    try:
        text = _sent_text(write, name, media_type)
        # What admission has changed is encoded again.
        return text if text and orjson.loads(text) == tree[name] else orjson.dumps(tree[name])
    except (msgspec.DecodeError, ValueError, PatchError):
        # Go accepts texts that are not valid Unicode, and compares numbers that are written differently.
        return orjson.dumps(tree[name])


def _media_type(write: Write) -> str:
    content_type = write.context.body.media_type
    if write.context.verb == "patch":
        return patch_media_type(content_type)
    return parse_media_type(content_type) if content_type else MediaType.JSON


def _sent_text(write: Write, name: str, media_type: str) -> bytes:
    body, carry_out = write.context.body, _PATCHES.get(media_type)
    if carry_out is not None and write.stored is not None:
        patched = carry_out(lossless_json.loads(write.stored.text), lossless_json.loads(body.data))
        return lossless_json.dumps(patched.get(name)).encode()
    if media_type == MediaType.JSON:
        return bytes(_MEMBERS.decode(body.data).get(name, b""))
    return lossless_json.dumps(sorted_keys(with_go_numbers(write.new[name]))).encode()


def _without_managers(tree: Tree) -> Tree:
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _SERVER_FIELDS}
    return tree | {"metadata": metadata}


def check_unchanged(write: Write, names: tuple[str, ...]) -> Iterator[FieldError]:
    """Refuse other bytes than the stored ones."""
    for name in names:
        text = sent_text(write, name)
        if write.stored is not None and text != stored_text(write.stored.value, name):
            value = lossless_json.dumps(lossless_json.loads(text)) if text else "null"
            detail = f"{value}: {IMMUTABLE}"
            yield FieldError(type=ErrorType.INVALID, field=str(ROOT.child(name)), detail=detail)


def canonical_with(tree: Tree, texts: Mapping[str, bytes]) -> bytes:
    """Return the canonical text of an object, with some fields as they were sent."""
    fragments = {name: orjson.Fragment(text) for name, text in texts.items() if text}
    return canonical({name: fragments.get(name, value) for name, value in tree.items()})
