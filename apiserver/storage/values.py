"""Values of a store as canonical text, whichever program wrote them.

This server writes canonical JSON, and so does kube-apiserver where it stores JSON. What a kube-apiserver wrote in
protobuf is decoded; JSON in another order, put there by hand, is put in order.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import orjson

from mockube.apimachinery.tree import Tree
from mockube.apiserver.storage.stored import canonical, is_canonical
from mockube.apiserver.wire.protobuf import envelope
from mockube.apiserver.wire.protobuf.errors import ProtobufError

LOG = logging.getLogger(__name__)

MAX_TRUSTED: Final = 1_000
"""Values that are trusted at a time, at most: a bound, for a write may fail."""
MAX_TRUSTED_BYTES: Final = 16 << 20
"""Of these values together."""


class Unreadable(ValueError):
    """A value that is no object at all."""


class _Metadata(msgspec.Struct, rename="camel", gc=False):
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


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata


_check_metadata = msgspec.json.Decoder(_Object).decode


def read_value(value: bytes) -> bytes:
    """The canonical text of a stored value, whose metadata has the types that it should have."""
    text = value if is_canonical(value) else canonical(_tree(value))
    try:
        _check_metadata(text)
        if not text.isascii():
            text.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"a stored value is not an object: {error}: {value[:100]!r}") from error
    return text


def _tree(value: bytes) -> Tree:
    try:
        tree = envelope.decode(value) if envelope.is_protobuf(value) else orjson.loads(value)
        kind, api_version, metadata = tree["kind"], tree["apiVersion"], tree["metadata"]
        metadata.setdefault("uid", "")  # what others put into the store may have none
    except (ProtobufError, orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise Unreadable(f"a stored value is not an object: {error}: {value[:100]!r}") from error
    if not (kind and api_version):
        raise Unreadable(f"a stored value has no kind or version: {value[:100]!r}")
    typed_tree: Tree = tree
    return typed_tree


class TrustedValues:
    """Values that this process has written and that its watch has not received yet: they need not be decoded.

    A comparison costs much less than decoding: an etcd returns another object.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[bytes, ...]] = {}
        """By their keys, those of a key in the order in which they were written."""
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


MAX_REASON: Final = 300
"""Characters of an error that are logged: the value may be part of it."""
MAX_REPORTED: Final = 10_000
"""Objects that are recorded as logged; after so many the record is cleared."""


class UnreadableObjects:
    """Values below one prefix of the store that are not the object of their key.

    Each is counted, and named in the log once for each revision. Lists and watches leave it out; a get of it is an
    error; it can be deleted by name.
    """

    def __init__(self) -> None:
        self._revisions: dict[bytes, int] = {}
        self._reported: dict[bytes, int] = {}
        self.failures: Counter[bytes] = Counter()
        """Return the number of unreadable values by folder."""

    def __bool__(self) -> bool:
        return bool(self._revisions)

    @property
    def revisions(self) -> Mapping[bytes, int]:
        """The keys whose values cannot be read now, and since which revision."""
        return self._revisions

    def below(self, prefix: bytes) -> Sequence[bytes]:
        return sorted(key for key in self._revisions if key.startswith(prefix))

    def add(self, folder: bytes, key: bytes, revision: int, error: Exception) -> None:
        self._revisions[key] = revision
        self.report(folder, key, revision, error)

    def discard(self, key: bytes) -> None:
        self._revisions.pop(key, None)

    def clear(self) -> None:
        """Reset before everything is listed again."""
        self._revisions.clear()

    def report(self, folder: bytes, key: bytes, revision: int, error: Exception) -> None:
        """Count and log an object that cannot be read, or not be rendered for a client."""
        if self._reported.get(key) == revision:
            return
        if len(self._reported) >= MAX_REPORTED:
            self._reported.clear()
        self._reported[key] = revision
        self.failures[folder] += 1
        reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
        LOG.error("The object at %s cannot be read: %s", key.decode(errors="replace"), reason)


def other_kind(text: bytes) -> Unreadable:
    return Unreadable(f"it is of another kind or version: {text[:100]!r}")


def with_first_version(text: bytes, heads: tuple[bytes, ...]) -> bytes:
    """The text of an object in the first of its versions: they differ in their names only."""
    if text.startswith(heads[0]):
        return text
    return heads[0] + next(text[len(head) :] for head in heads if text.startswith(head))
