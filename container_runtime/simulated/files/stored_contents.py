"""The stored form of the files of a volume: lines of JSON, compressed. Pure.

The first line has the version of the format and the time up to which the files are complete; each other line is a file. The same
files have the same bytes.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from posixpath import normpath
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.volume_contents import MAX_BYTES, EncodedContents

_VERSION: Final = 1
_MAX_DECODED: Final = 4 * limits.MAX_FILE_BYTES
"""The maximum size of the lines: base64 and escaped characters make files longer."""


class BrokenContents(ValueError):
    """Stored contents cannot be read."""


class Contents(NamedTuple):
    files: Mapping[str, FileEntry]
    complete_until: datetime
    """The time up to which the writes of commands that can be repeated are in the files."""


class _Header(Struct, kw_only=True):
    version: int
    complete_until: datetime


class _File(Struct, kw_only=True, omit_defaults=True):
    path: str
    text: str | None = None
    """The data, if they are UTF-8."""
    base64: str | None = None
    zeros: int = 0
    is_sparse: bool = False
    target: str = ""
    mode: int
    user: int = 0
    group: int = 0
    file_system: str = ""
    modified: float = 0.0
    is_guess: bool = False


_decode_header: Final = msgspec.json.Decoder(_Header).decode
_decode_file: Final = msgspec.json.Decoder(_File).decode


def encode(files: Iterable[tuple[str, FileEntry]], complete_until: datetime) -> EncodedContents:
    """Encode files. The largest ones are left out if there is no space for all."""
    header = msgspec.json.encode(_Header(version=_VERSION, complete_until=complete_until))
    lines = {path: msgspec.json.encode(_stored_file(path, entry)) for path, entry in files}
    data = _compress([header, *lines.values()])
    if len(data) <= MAX_BYTES:
        return EncodedContents(data, ())
    sizes = sorted((len(_compress([line])), path) for path, line in lines.items())
    space = MAX_BYTES - len(_compress([header]))
    included = set[str]()
    for size, path in sizes:
        space -= size
        if space < 0:
            break
        included.add(path)
    left_out = tuple(path for path in lines if path not in included)
    return EncodedContents(
        _compress([header, *(line for path, line in lines.items() if path in included)]), left_out
    )


def _compress(lines: Iterable[bytes]) -> bytes:
    return zlib.compress(b"\n".join(lines), 6)


def _stored_file(path: str, entry: FileEntry) -> _File:
    text, encoded = None, None
    if entry.data is not None:
        try:
            text = entry.data.decode()
        except UnicodeDecodeError:
            encoded = b64encode(entry.data).decode()
    return _File(
        path=path,
        text=text,
        base64=encoded,
        zeros=entry.zeros,
        is_sparse=entry.is_sparse,
        target=entry.target,
        mode=entry.mode,
        user=entry.user,
        group=entry.group,
        file_system=entry.file_system,
        modified=entry.modified,
        is_guess=entry.is_guess,
    )


def decode(data: bytes) -> Contents:
    """Return stored files by path; raise `BrokenContents` if they cannot be read."""
    try:
        decompressor = zlib.decompressobj()
        lines = decompressor.decompress(data, _MAX_DECODED)
        if not decompressor.eof:
            raise BrokenContents("they are not complete, or too large")
        first, *others = lines.split(b"\n")
        header = _decode_header(first)
        if header.version != _VERSION:
            raise BrokenContents(f"they have version {header.version} of the format, not {_VERSION}")
        files = dict(_files(others))
    except (zlib.error, msgspec.DecodeError, RecursionError) as error:
        raise BrokenContents(str(error)) from error
    size = sum(len(entry.data or b"") for entry in files.values())
    if size > limits.MAX_FILE_BYTES or len(files) > limits.MAX_FILES:
        raise BrokenContents("they are too large")
    return Contents(files, header.complete_until)


def _files(lines: Iterable[bytes]) -> Iterator[tuple[str, FileEntry]]:
    for line in lines:
        file = _decode_file(line)
        if not file.path.startswith("/") or normpath(file.path) != file.path:
            raise BrokenContents(f"the path {file.path!r} is invalid")
        data = None if file.text is None else file.text.encode()
        if file.base64 is not None:
            try:
                data = b64decode(file.base64, validate=True)
            except ValueError as error:
                raise BrokenContents(f"{file.path}: {error}") from error
        yield (
            file.path,
            FileEntry(
                data=data,
                zeros=file.zeros,
                is_sparse=file.is_sparse,
                target=file.target,
                mode=file.mode,
                user=file.user,
                group=file.group,
                file_system=file.file_system,
                modified=file.modified,
                is_guess=file.is_guess,
            ),
        )
