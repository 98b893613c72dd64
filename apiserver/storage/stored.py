"""An object at one revision, as it is stored and as it is served.

What is stored is canonical JSON, `kind, apiVersion, metadata, …`, without a resourceVersion: that is the store's
revision, which is spliced in behind the uid without parsing. The item of a list is encoded once and shared;
so are the labels, which are decoded without the rest of the tree.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from mockube.apimachinery.fields import SelectableField
from mockube.apimachinery.tree import ReadOnlyTree, Tree

_NAME = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_HEAD = re.compile(
    rb'\{"kind":' + _NAME + rb',"apiVersion":' + _NAME + rb',("metadata"):\{'
    rb'(?:"name":' + _NAME + rb",)?"
    rb'(?:"generateName":' + _NAME + rb",)?"
    rb'(?:"namespace":' + _NAME + rb",)?"
    rb'"uid":' + _NAME
)
"""Of canonical text, up to where the resourceVersion belongs; the group is where an item of a list begins."""


class NotCanonical(ValueError):
    """The text is not as this server writes it."""


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


_read_metadata = msgspec.json.Decoder(_Object).decode


class Stored(msgspec.Struct, eq=False, gc=False):
    """One object at one revision. `key` and `value` are the store's; everything else is derived from them.

    There are as many as there are objects, and none is part of a cycle: the garbage collector skips them.
    """

    key: bytes
    value: bytes
    revision: int
    is_outdated: bool = False
    """Whether it is stored in another version than the storage version: a write without a change stores it again."""
    _item: bytes | None = None
    _labels: Mapping[str, str] | None = None
    _selectable: tuple[object, Mapping[str, str]] | None = None
    _shared: ReadOnlyTree | None = None

    @classmethod
    def without_revision(cls, value: bytes) -> "Stored":
        """Return an object that is not in the store, and so has no resourceVersion."""
        stored = cls(b"", value, 0)
        stored._item = b",{" + value[value.index(b'"metadata":') :]
        return stored

    @property
    def text(self) -> bytes:
        """The object's JSON with its resourceVersion."""
        value, item = self.value, self._item
        if item is not None:
            return value[: value.index(b'"metadata":')] + item[2:]
        end = _head(value).end()
        return b'%b,"resourceVersion":"%d"%b' % (value[:end], self.revision, value[end:])

    @property
    def item(self) -> bytes:
        """A comma, and the object's JSON as an item of a list, whose head has kind and apiVersion of all items."""
        if self._item is None:
            self._item = _as_item(self.value, self.revision)
        return self._item

    def named_item(self) -> tuple[bytes, memoryview]:
        """The same with kind and apiVersion, in two parts, of which the large one is shared with `item`."""
        return b"," + self.value[: self.value.index(b'"metadata":')], memoryview(self.item)[2:]

    @property
    def labels(self) -> Mapping[str, str]:
        if self._labels is None:
            self._labels = _read_metadata(self.value).metadata.labels or {}
        return self._labels

    def selectable(self, fields: Mapping[str, SelectableField]) -> Mapping[str, str]:
        """Return the fields for field selectors; cached for one version of the resource."""
        if self._selectable is None or self._selectable[0] is not fields:
            try:
                tree = orjson.loads(self.value)
            except orjson.JSONDecodeError:  # beyond its metadata, that is, which has been checked
                tree = None
            self._selectable = fields, {label: _value(tree, field) for label, field in fields.items()}
        return self._selectable[1]

    def tree(self) -> Tree:
        """Return a new tree of the object, which the caller may change."""
        tree: Tree = orjson.loads(self.text)
        return tree

    def shared_tree(self) -> ReadOnlyTree:
        """Return a shared tree of the object: for the few objects that many writes read, such as an account."""
        if self._shared is None:
            self._shared = self.tree()
        return self._shared

    def at(self, revision: int) -> "Stored":
        """Return the same object with another revision, as a deletion's event has it."""
        return Stored(self.key, self.value, revision)


def _value(tree: Any, field: SelectableField) -> str:
    return next(filter(None, (_text(tree, path) for path in field.paths)), field.absent)


def _text(tree: Any, path: tuple[str, ...]) -> str:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    if isinstance(tree, bool):
        return "true" if tree else "false"
    return "" if tree is None else str(tree)


def is_canonical(value: bytes) -> bool:
    return _HEAD.match(value) is not None


def _head(value: bytes) -> re.Match[bytes]:
    head = _HEAD.match(value)
    if head is None:
        raise NotCanonical(value[:200])
    return head


def _as_item(value: bytes, revision: int) -> bytes:
    head = _head(value)
    begin, at = head.start(1), head.end()
    return b',{%b,"resourceVersion":"%d"%b' % (value[begin:at], revision, value[at:])


_METADATA = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
"""Kubernetes' order, on which the place of the resourceVersion depends."""
_IDENTITY = _METADATA[: _METADATA.index("uid") + 1]
_FURTHER = tuple(sorted(_METADATA[len(_IDENTITY) :]))


def canonical(tree: Tree) -> bytes:
    """The text to store for an object; its resourceVersion is left out."""
    metadata = tree["metadata"]
    ordered = {field: metadata[field] for field in _METADATA if field in metadata}
    head = {"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": ordered}
    encoded = orjson.dumps(head | {field: value for field, value in tree.items() if field != "metadata"})
    # orjson's buffer is several times as large as its content: a value that is kept for long is copied out of it.
    return bytes(memoryview(encoded))


def canonical_custom(tree: Tree) -> bytes:
    """The text to store for a custom object: all fields but its identity are in the order of their names, as of Go's maps."""
    metadata = tree["metadata"]
    identity = {field: metadata[field] for field in _IDENTITY if field in metadata}
    head = orjson.dumps({"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": identity})
    further = _members({field: metadata[field] for field in _FURTHER if field in metadata})
    others = _members({field: value for field, value in tree.items() if field not in _HEAD_FIELDS})
    return b"%b%b}%b}" % (head[:-2], further, others)


_HEAD_FIELDS = frozenset({"kind", "apiVersion", "metadata"})


def _members(fields: Tree) -> bytes:
    """The text of an object's fields, after a comma."""
    return b"," + orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)[1:-1] if fields else b""
