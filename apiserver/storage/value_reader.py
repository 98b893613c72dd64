"""Read stored values as objects: which values need no check, and which ones are not what their folder has."""

from collections.abc import Callable, Sequence

from mockube.etcd.kv import KeyValue

from .stored_object import StoredObject, TrustedValues, other_kind
from .unreadable_objects import UnreadableObjects


class ValueReader:
    def __init__(self, read: Callable[[bytes], bytes]) -> None:
        """`read` returns the canonical text of a value, or raises an error."""
        self._read = read
        self._trusted = TrustedValues()
        self._heads: dict[bytes, tuple[bytes, ...]] = {}
        """The start of the text of every object in a folder, for folders in which it is constant."""
        self.unreadable = UnreadableObjects()

    def trust(self, key: bytes, text: bytes) -> None:
        """Mark canonical text that is about to be written as readable, until the watch receives it."""
        self._trusted.add(key, text)

    def expect_kind(self, folder: bytes, kind: str, api_versions: Sequence[str] = ()) -> bool:
        """Read values in a folder only if they are of a kind, in one of some versions; return whether that is new."""
        begin = b'{"kind":"%b",' % kind.encode()
        heads = tuple(b'%b"apiVersion":"%b",' % (begin, version.encode()) for version in api_versions) or (
            begin,
        )
        is_new = self._heads.get(folder, ()) != heads
        self._heads[folder] = heads
        return is_new

    def is_expected(self, folder: bytes, stored: StoredObject) -> bool:
        heads = self._heads.get(folder)
        return heads is None or stored.value.startswith(heads)

    def read(self, folder: bytes, kv: KeyValue) -> StoredObject:
        """Return the object of a value; raise any error if it cannot be read."""
        text = kv.value if self._trusted.has(kv.key, kv.value) else self._read(kv.value)
        heads = self._heads.get(folder)
        if heads is not None and not text.startswith(heads):
            raise other_kind(text)
        return StoredObject(kv.key, text, kv.mod_revision)

    def receive(self, folder: bytes, kv: KeyValue) -> StoredObject | None:
        """Return the object of a value from the store; record a value that cannot be read, and return None."""
        try:
            stored = self.read(folder, kv)
            self._trusted.discard(kv.key, kv.value)
        except Exception as error:  # noqa: BLE001 - a decoder may raise any error
            self.unreadable.add(folder, kv.key, kv.mod_revision, error)
            return None
        if self.unreadable:
            self.unreadable.discard(kv.key)
        return stored
