"""Stored objects: their keys, their encoding in the store, and their encoding for clients.

Keys have Kubernetes' own layout, `/registry/pods/NAMESPACE/NAME`. Names and namespaces are checked, so that a key is always
in the folder of its resource.

This server stores canonical JSON, `kind, apiVersion, metadata, …`, without a resourceVersion: that is the store's
revision, which is inserted after the uid without parsing. The item of a list is encoded once and shared. The labels
are decoded once, without the rest of the object.

Other programs may have written a value. JSON of a kube-apiserver is canonical, and its protobuf is decoded; JSON in
another order is reordered.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, Protocol

import msgspec
import orjson

from mockube.apimachinery import meta, piecewise, status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.names import check_path_segment_name
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import SelectableField
from mockube.apiserver.wire.protobuf import envelope
from mockube.apiserver.wire.protobuf.varint import ProtobufError
from mockube.etcd import compression

MASTER_LEASES: Final = b"masterleases/"
"""The folder of the addresses of servers; no resource is stored there."""
MAX_TRUSTED: Final = 1_000
"""The maximum number of trusted values; it is needed because values of failed writes are not discarded."""
MAX_TRUSTED_BYTES: Final = 16 << 20
"""The maximum size of all trusted values."""
MAX_ITEM_BYTES: Final = 16 << 20
"""The maximum size of all cached items of lists."""
_REVISION: Final = b',"resourceVersion":"%d"'
MAX_REASON: Final = 300
"""The characters of an error that are logged, because the value may be part of it."""

_NAME = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_HEAD = re.compile(
    rb'\{"kind":' + _NAME + rb',"apiVersion":' + _NAME + rb',("metadata"):\{'
    rb'(?:"name":' + _NAME + rb",)?"
    rb'(?:"generateName":' + _NAME + rb",)?"
    rb'(?:"namespace":' + _NAME + rb",)?"
    rb'"uid":' + _NAME
)
"""Canonical text up to the position of the resourceVersion; the group is the start of a list item."""


# --- keys


class KeyedResource(Protocol):
    """The part of a resource that its keys need."""

    @property
    def folder(self) -> bytes:
        """The folder of the resource's objects, below the prefix."""


class Layout:
    """The keys below one prefix, usually /registry."""

    def __init__(self, prefix: str) -> None:
        self.root = f"/{prefix.strip('/')}/".encode()

    def prefix(self, resource: KeyedResource) -> bytes:
        """Return the prefix of all objects of a resource."""
        return self.root + resource.folder

    def scope(self, resource: KeyedResource, namespace: str) -> bytes:
        """Return the prefix of the objects in a namespace; "" for all namespaces."""
        prefix = self.prefix(resource)
        if not namespace:
            return prefix
        try:
            return prefix + _folder(namespace)
        except _RelativeNamespace:
            raise _invalid_key(resource, namespace) from None

    def object(self, resource: KeyedResource, namespace: str, name: str) -> bytes:
        segment = path_segment(name)
        if namespace:
            try:
                return self.root + resource.folder + _folder(namespace) + segment
            except _RelativeNamespace:
                raise _invalid_key(resource, f"{namespace}/{name}") from None
        return self.root + resource.folder + segment

    def resource_of(
        self, key: bytes, rows: Mapping[GroupResource, KeyedResource]
    ) -> tuple[bytes, GroupResource]:
        """Return the folder and the name of a key's resource. A key of no object has no folder, and the name is its first segment."""
        first, _, rest = key[len(self.root) :].partition(b"/")
        # One segment of a key names a resource of the server, two a custom one.
        folders = first + b"/", first + b"/" + rest.partition(b"/")[0] + b"/"
        for name, row in rows.items():
            if row.folder in folders:
                return row.folder, name
        return b"", GroupResource("", first.decode(errors="replace"))


def _folder(namespace: str) -> bytes:
    return _usual_folder(namespace) if len(namespace) <= _USUAL_LENGTH else _make_folder(namespace)


def _make_folder(namespace: str) -> bytes:
    if not namespace:
        raise status.BadRequest("Namespace parameter required.")
    if namespace in {".", ".."} or "/" in namespace:
        raise _RelativeNamespace
    return namespace.encode() + b"/"


class _RelativeNamespace(Exception):
    """A key with this namespace would not be in the folder of its resource."""


def _invalid_key(resource: KeyedResource, rest: str) -> status.ApiError:
    """Return the error that kube-apiserver's storage has for such a key; it has no reason."""
    return status.ApiError(f"invalid key: {quote(f'/{resource.folder.decode()}{rest}')}")


_usual_folder = lru_cache(maxsize=1024)(_make_folder)
_USUAL_LENGTH: Final = 63


def path_segment(name: str) -> bytes:
    """Return the last part of an object's key; a name that cannot be in one is refused."""
    if name in {"", ".", ".."} or "/" in name or "%" in name:
        raise _invalid_name(name)
    return name.encode()


def _invalid_name(name: str) -> status.BadRequest:
    if not name:
        return status.BadRequest("Name parameter required.")
    return status.BadRequest(
        f"Name parameter invalid: {quote(name)}: {';'.join(check_path_segment_name(name))}"
    )


# --- objects


class UnreadableValue(ValueError):
    """A value that is not an object."""


class NotCanonical(ValueError):
    """The text is not in the canonical encoding."""


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata


_read_metadata = msgspec.json.Decoder(_Object).decode


class _CompressedValue(msgspec.Struct, eq=False, gc=False):
    """The value of an object that was replaced or deleted."""

    compressed: bytes
    size: int
    """Bytes of the value."""
    newer: "StoredObject | None"
    """The object whose value is the dictionary."""

    def decompress(self) -> bytes:
        return compression.decompress(self.compressed, _dictionary(self.newer))


def _dictionary(newer: "StoredObject | None") -> bytes:
    return b"" if newer is None else newer.value


class StoredObject(msgspec.Struct, eq=False, gc=False):
    """One object at one revision. `key` and `value` are the store's; everything else is derived from them.

    There is one for each object. They have no reference cycles, so the garbage collector does not track them.
    """

    key: bytes
    _value: bytes | _CompressedValue
    revision: int
    _item: bytes | None = None
    _labels: Mapping[str, str] | None = None
    _selectable: tuple[object, Mapping[str, str]] | None = None
    _shared: ReadOnlyTree | None = None
    _chain: int = 0
    """The number of older objects that cannot be decompressed without this one."""

    @classmethod
    def without_revision(cls, value: bytes) -> "StoredObject":
        """Return an object that is not in the store, and so has no resourceVersion."""
        stored = cls(b"", value, 0)
        stored._item = b",{" + value[value.index(b'"metadata":') :]
        return stored

    @property
    def value(self) -> bytes:
        value = self._value
        return value if isinstance(value, bytes) else value.decompress()

    @property
    def size(self) -> int:
        """Bytes of the value."""
        value = self._value
        return len(value) if isinstance(value, bytes) else value.size

    def compress(self, newer: "StoredObject | None") -> None:
        """Compress the value, with the value of a newer object as dictionary; drop everything that is derived from it."""
        self._item = self._labels = self._selectable = self._shared = None
        value = self._value
        if not isinstance(value, bytes) or not compression.is_compressible(value):
            return
        is_end = self._chain >= compression.MAX_CHAIN - 1
        if is_end or (newer is not None and newer.size > compression.MAX_DICTIONARY):
            newer = None
        if newer is not None:
            newer._chain = self._chain + 1  # noqa: SLF001 - of the same class
        self._value = _CompressedValue(compression.compress(value, _dictionary(newer)), len(value), newer)

    @property
    def text(self) -> bytes:
        """The object's JSON with its resourceVersion."""
        value, item = self.value, self._item
        if item is not None:
            return value[: value.index(b'"metadata":')] + item[2:]
        end = _head(value).end()
        return value[:end] + _REVISION % self.revision + value[end:]

    @property
    def item(self) -> bytes:
        """A comma, and the object's JSON as an item of a list, whose head has kind and apiVersion of all items."""
        item = self._item
        if item is None:
            item = self._item = b"".join(self._parts(named=False))
            _recent_items.add(self, len(item))
        return item

    def item_parts(self) -> Sequence[bytes | memoryview]:
        """Return the item in parts, of which the large one is shared with the value: an item of a large list is not kept."""
        return self._parts(named=False) if self._item is None else (self._item,)

    def named_item_parts(self) -> Sequence[bytes | memoryview]:
        """Return the same for the item with kind and apiVersion."""
        return self._parts(named=True)

    def item_size(self) -> int:
        """Return the bytes of the item's parts, without making them."""
        return (
            len(self._item) if self._item is not None else self.named_item_size() - self._metadata_start() + 1
        )

    def named_item_size(self) -> int:
        """Return the bytes of the parts of the item with kind and apiVersion."""
        return 1 + self.size + len(_REVISION % self.revision)

    def _metadata_start(self) -> int:
        return self.value.index(b'"metadata":')

    def _parts(self, *, named: bool) -> Sequence[bytes | memoryview]:
        value = self.value
        head = _head(value)
        begin = 1 if named else head.start(1)
        start = b",{" + value[begin : head.end()] + _REVISION % self.revision
        return start, memoryview(value)[head.end() :]

    def named_item(self) -> Sequence[bytes | memoryview]:
        """Return the item with kind and apiVersion, in two parts, of which the large one is shared with `item`."""
        return b"," + self.value[: self.value.index(b'"metadata":')], memoryview(self.item)[2:]

    def drop_item(self) -> None:
        """Drop the cached item, which takes as much memory as the value."""
        self._item = None

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
            except orjson.JSONDecodeError:  # only the metadata has been checked
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

    def at(self, revision: int) -> "StoredObject":
        """Return the same object with another revision, as a deletion's event has it."""
        return StoredObject(self.key, self.value, revision)


class _RecentItems:
    """The objects whose items were encoded last. Those of older ones are dropped."""

    __slots__ = ("_bytes", "_objects")

    def __init__(self) -> None:
        self._objects: deque[tuple[StoredObject, int]] = deque()
        self._bytes = 0

    def add(self, stored: StoredObject, size: int) -> None:
        self._objects.append((stored, size))
        self._bytes += size
        while self._bytes > MAX_ITEM_BYTES:
            oldest, size = self._objects.popleft()
            oldest.drop_item()
            self._bytes -= size


_recent_items: Final = _RecentItems()


def _value(tree: Any, field: SelectableField) -> str:
    return next(filter(None, (_text(tree, path) for path in field.paths)), field.absent)


def _text(tree: Any, path: tuple[str, ...]) -> str:
    value = meta.value_at(tree, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def is_canonical(value: bytes) -> bool:
    return _HEAD.match(value) is not None


def _head(value: bytes) -> re.Match[bytes]:
    head = _HEAD.match(value)
    if head is None:
        raise NotCanonical(value[:200])
    return head


# --- canonical text

_METADATA = tuple(field for field in meta.FIELD_ORDER if field != "resourceVersion")
"""The stored fields of metadata in Kubernetes' order, on which the position of the resourceVersion depends."""
_STORED_FIELDS = frozenset(_METADATA)
_IDENTITY = _METADATA[: _METADATA.index("uid") + 1]
_OTHER_METADATA = tuple(sorted(_METADATA[len(_IDENTITY) :]))


def canonical(tree: Tree, size: int = 0) -> bytes:
    """Return the text to store for an object that a client sent in `size` bytes; its resourceVersion is omitted."""
    metadata = tree["metadata"]
    ordered = {field: metadata[field] for field in meta.in_order(metadata.keys() & _STORED_FIELDS)}
    head = {"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": ordered}
    encoded = piecewise.encoder_for_size(size)(
        head | {field: value for field, value in tree.items() if field != "metadata"}
    )
    # orjson's buffer is several times as large as its content, so a value that is kept is copied.
    return bytes(memoryview(encoded)) if size < piecewise.MIN_BYTES_IN_PIECES else encoded


def canonical_custom(tree: Tree, size: int = 0) -> bytes:
    """Return the text to store for a custom object: all fields except its identity are sorted, as in Go's maps."""
    metadata = tree["metadata"]
    identity = {field: metadata[field] for field in _IDENTITY if field in metadata}
    head = orjson.dumps({"kind": tree["kind"], "apiVersion": tree["apiVersion"], "metadata": identity})
    other_metadata = _members(
        {field: metadata[field] for field in _OTHER_METADATA if field in metadata}, size
    )
    others = _members({field: value for field, value in tree.items() if field not in _HEAD_FIELDS}, size)
    return b"%b%b}%b}" % (head[:-2], other_metadata, others)


_HEAD_FIELDS = frozenset({"kind", "apiVersion", "metadata"})


class EncodedResource(Protocol):
    """The part of a resource on which the encoding of its objects depends."""

    @property
    def custom(self) -> bool: ...


def encoder(resource: EncodedResource, size: int = 0) -> Callable[[Tree], bytes]:
    """Return the function that encodes objects of a resource, of about `size` bytes, to be stored."""
    return partial(canonical_custom if resource.custom else canonical, size=size)


def _members(fields: Tree, size: int) -> bytes:
    """Return the text of an object's fields, after a comma."""
    return (
        b"," + piecewise.encoder_for_size(size)(fields, option=orjson.OPT_SORT_KEYS)[1:-1] if fields else b""
    )


# --- values of the store


class _CheckedMetadata(msgspec.Struct, rename="camel", gc=False):
    """The fields that watches, indexes, selectors and deletion read."""

    uid: str
    name: str = ""
    namespace: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[dict[str, str | bool | None]] | None = None
    managed_fields: list[dict[str, msgspec.Raw]] | None = None


class _CheckedObject(msgspec.Struct, gc=False):
    metadata: _CheckedMetadata


_check_metadata = msgspec.json.Decoder(_CheckedObject).decode


def read_value(value: bytes) -> bytes:
    """Return the canonical text of a value, whose metadata has the right types."""
    text = value if is_canonical(value) else canonical(_tree(value))
    try:
        _check_metadata(text)
        if not text.isascii():
            text.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableValue(f"a stored value is not an object: {error}: {value[:100]!r}") from error
    return text


def _tree(value: bytes) -> Tree:
    try:
        tree = envelope.decode(value) if envelope.is_protobuf(value) else orjson.loads(value)
        kind, api_version, metadata = tree["kind"], tree["apiVersion"], tree["metadata"]
        metadata.setdefault("uid", "")  # objects of other programs may have none
    except (ProtobufError, orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise UnreadableValue(f"a stored value is not an object: {error}: {value[:100]!r}") from error
    if not (kind and api_version):
        raise UnreadableValue(f"a stored value has no kind or version: {value[:100]!r}")
    typed_tree: Tree = tree
    return typed_tree


class TrustedValues:
    """Values that this process has written and that its watch has not received yet: they need not be decoded.

    A comparison costs much less than decoding.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[bytes, ...]] = {}
        """By key; the values of a key are in the order in which they were written."""
        self._count = self._size = 0

    def has(self, key: bytes, value: bytes) -> bool:
        return value in self._values.get(key, ())

    def add(self, key: bytes, value: bytes) -> None:
        """Add a value that is about to be written; clear the set when it is full."""
        values = self._values.get(key, ())
        if value in values:
            return
        size = self._size + len(value)
        if self._count >= MAX_TRUSTED or size > MAX_TRUSTED_BYTES:
            self._values.clear()
            values, self._count, size = (), 0, len(value)
        self._values[key] = *values, value
        self._count += 1
        self._size = size

    def discard(self, key: bytes, value: bytes) -> None:
        """Remove a value that the watch has received, and the values before it, which were not written."""
        values = self._values.get(key, ())
        if value not in values:
            return
        end = values.index(value) + 1
        self._count -= end
        self._size -= sum(map(len, values[:end]))
        if end == len(values):
            del self._values[key]
        else:
            self._values[key] = values[end:]


def other_kind(text: bytes) -> UnreadableValue:
    return UnreadableValue(f"it is of another kind or version: {text[:100]!r}")
