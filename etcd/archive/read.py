"""Read an archive of a store. The whole file is checked before it is used."""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from msgspec import Struct

from mockube.etcd.embedded.leases import MAX_TTL
from mockube.etcd.embedded.store import RequestLimits

from .lines import ArchiveHeader, ArchiveTrailer, Entry, UnreadableLine, read_header, read_line

MAX_LINE_BYTES: Final = 1 << 24
"""The limit of a line in bytes, far above the largest key and value of any store."""


MAX_BYTES: Final = 1 << 34
"""The limit of all lines in bytes: a small compressed file cannot fill the memory."""
MAX_ENTRY: Final = RequestLimits().request_bytes
"""The limit of a key and its value: a store refuses larger writes, so that a restoration would fail halfway."""
MAX_REVISION: Final = 1 << 62
"""The largest revision that is accepted, far below the largest of etcd."""


class BadArchive(Exception):
    """The file is damaged, or is another kind of file. The message has its name."""


class Archive(Struct, frozen=True, kw_only=True):
    """A complete file."""

    file: BinaryIO
    name: str
    """The name of the file in messages."""
    header: ArchiveHeader
    count: int

    @property
    def root(self) -> bytes:
        return self.header.prefix.encode()

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, read from the file again at each call."""
        with _name_errors(self.name), _lines(self.file) as lines:
            next(lines)
            for line in lines:
                entry = read_line(line)
                if isinstance(entry, Entry):
                    yield entry


VisitEntry = Callable[[Entry, bytes], None]
"""A function of an entry and the prefix of all keys that raises `UnreadableLine` to refuse the archive."""


def check(file: BinaryIO, name: str, visit: VisitEntry | None = None) -> Archive:
    """Return the archive in a seekable file; raise `BadArchive` if it is damaged.

    `visit` may refuse values that the caller does not accept.
    """
    with _name_errors(name), _lines(file) as lines:
        return _check(file, name, lines, visit)


def _check(file: BinaryIO, name: str, lines: Iterator[bytes], visit: VisitEntry | None) -> Archive:
    first = next(lines, b"")
    header, digest, size = read_header(first), hashlib.sha256(first), len(first)
    _check_header(header)
    root, last = header.prefix.encode(), b""
    for count, line in enumerate(lines):
        size += len(line)
        if size > MAX_BYTES:
            raise UnreadableLine(f"is larger than {MAX_BYTES} bytes uncompressed")
        entry = read_line(line)
        if isinstance(entry, ArchiveTrailer):
            if next(lines, b"") or (entry.count, entry.sha256) != (count, digest.hexdigest()):
                raise UnreadableLine("is damaged")
            return Archive(file=file, name=name, header=header, count=count)
        if entry.key <= last or not entry.key.startswith(root):
            raise UnreadableLine("is damaged: its keys are out of order or outside its prefix")
        _check_entry(entry)
        if visit is not None:
            visit(entry, root)
        last = entry.key
        digest.update(line)
    raise UnreadableLine("is truncated")


def _check_header(header: ArchiveHeader) -> None:
    if not header.prefix:
        raise UnreadableLine("is damaged: it has no key prefix")
    if not 0 < header.revision <= MAX_REVISION:
        raise UnreadableLine(f"is damaged: revision {header.revision} is invalid")


def _check_entry(entry: Entry) -> None:
    """Refuse entries that no store accepts."""
    key = entry.key.decode(errors="replace")
    if len(entry.key) + len(entry.value) > MAX_ENTRY:
        raise UnreadableLine(f"cannot be restored: {key} and its value have more than {MAX_ENTRY} bytes")
    if not 0 <= entry.ttl <= MAX_TTL:
        raise UnreadableLine(f"cannot be restored: {key} has a TTL of {entry.ttl} seconds")


@contextmanager
def _lines(file: BinaryIO) -> Iterator[Iterator[bytes]]:
    file.seek(0)
    with gzip.GzipFile(fileobj=file) as unpacked:
        yield iter(lambda: unpacked.readline(MAX_LINE_BYTES), b"")


@contextmanager
def _name_errors(name: str) -> Iterator[None]:
    """Add the name of the file to errors."""
    try:
        yield
    except gzip.BadGzipFile as error:
        raise BadArchive(f"{name} is not a mockube snapshot, or is damaged") from error
    except EOFError as error:
        raise BadArchive(f"{name} is truncated") from error
    except zlib.error as error:
        raise BadArchive(f"{name} is damaged") from error
    except UnreadableLine as error:
        raise BadArchive(f"{name} {error}") from error
