"""Read a store's file: all of it is looked at before any of it is used."""

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final

from msgspec import Struct

from mockube.etcd.archive.lines import Closing, Entry, Opening, Unreadable, read_line, read_opening
from mockube.etcd.embedded.admit import Limits
from mockube.etcd.embedded.leases import MAX_TTL

MAX_LINE_BYTES: Final = 1 << 24
"""Bytes of a line: far more than any store takes for a key and its value. What has more is no such file."""


MAX_BYTES: Final = 1 << 34
"""Of all lines: so a small file cannot fill a machine."""
MAX_ENTRY: Final = Limits().request_bytes
MAX_REVISION: Final = 1 << 62
"""Far from the end of the numbers that etcd counts with."""


class BadArchive(Exception):
    """The file is not as it was written, or is another kind of file. The message names it."""


class Archive(Struct, frozen=True, kw_only=True):
    """A file that is whole."""

    file: BinaryIO
    name: str
    """How people know the file."""
    opening: Opening
    count: int

    @property
    def root(self) -> bytes:
        return self.opening.prefix.encode()

    def entries(self) -> Iterator[Entry]:
        """From the first to the last, read anew at each call."""
        with _name_errors(self.name), _lines(self.file) as lines:
            next(lines)
            for line in lines:
                entry = read_line(line)
                if isinstance(entry, Entry):
                    yield entry


Look = Callable[[Entry, bytes], None]
"""Given an entry and the prefix of all keys; raises `Unreadable` to refuse the archive."""


def check(file: BinaryIO, name: str, look: Look | None = None) -> Archive:
    """The archive in a file that can be read more than once; `BadArchive` unless every byte is as it was written.

    A caller that restricts values refuses others by `look`.
    """
    with _name_errors(name), _lines(file) as lines:
        return _check(file, name, lines, look)


def _check(file: BinaryIO, name: str, lines: Iterator[bytes], look: Look | None) -> Archive:
    first = next(lines, b"")
    opening, digest, size = read_opening(first), hashlib.sha256(first), len(first)
    _check_opening(opening)
    root, last = opening.prefix.encode(), b""
    for count, line in enumerate(lines):
        size += len(line)
        if size > MAX_BYTES:
            raise Unreadable(f"has more than {MAX_BYTES} bytes when it is unpacked")
        entry = read_line(line)
        if isinstance(entry, Closing):
            if next(lines, b"") or (entry.count, entry.sha256) != (count, digest.hexdigest()):
                raise Unreadable("is damaged")
            return Archive(file=file, name=name, opening=opening, count=count)
        if entry.key <= last or not entry.key.startswith(root):
            raise Unreadable("is damaged: its keys are not in order, or not of the store that it names")
        _check_entry(entry)
        if look is not None:
            look(entry, root)
        last = entry.key
        digest.update(line)
    raise Unreadable("is truncated")


def _check_opening(opening: Opening) -> None:
    if not opening.prefix:
        raise Unreadable("is damaged: its prefix of keys is missing")
    if not 0 < opening.revision <= MAX_REVISION:
        raise Unreadable(f"is damaged: revision {opening.revision} is invalid")


def _check_entry(entry: Entry) -> None:
    """Refuse what no store takes."""
    key = entry.key.decode(errors="replace")
    if len(entry.key) + len(entry.value) > MAX_ENTRY:
        raise Unreadable(f"cannot be restored: {key} and its value have more than {MAX_ENTRY} bytes")
    if not 0 <= entry.ttl <= MAX_TTL:
        raise Unreadable(f"cannot be restored: {key} has a TTL of {entry.ttl} seconds")


@contextmanager
def _lines(file: BinaryIO) -> Iterator[Iterator[bytes]]:
    file.seek(0)
    with gzip.GzipFile(fileobj=file) as unpacked:
        yield iter(lambda: unpacked.readline(MAX_LINE_BYTES), b"")


@contextmanager
def _name_errors(name: str) -> Iterator[None]:
    """Errors contain the name of the file."""
    try:
        yield
    except gzip.BadGzipFile as error:
        raise BadArchive(f"{name} is not a mockube snapshot, or is damaged") from error
    except EOFError as error:
        raise BadArchive(f"{name} is truncated") from error
    except zlib.error as error:
        raise BadArchive(f"{name} is damaged") from error
    except Unreadable as error:
        raise BadArchive(f"{name} {error}") from error
