"""The file of a store's keys at one revision: gzip over lines of JSON, so that zcat, jq and diff can read it.

    {"format":"mockube-snapshot","version":1,"prefix":"/registry/","revision":812,"taken":"2030-01-01T00:00:00Z"}
    {"key":"/registry/namespaces/default","value":{"kind":"Namespace",…}}      keys in byte order
    {"key":"/registry/events/default/a.1","value":{…},"ttl":3600}              expires after so many seconds
    {"count":2,"sha256":"…"}                                                   number of keys; hash of all lines before

A value that is not a JSON object on one line, such as protobuf, is encoded as "value_base64", and a key that is not UTF-8
as "key_base64". Values are restored byte for byte. The functions on lines use no store and no file.
"""

import base64
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from mockube.etcd.errors import KVError
from mockube.etcd.kv import HEAD, KV, KeyValue, Range, Revision

FORMAT: Final = "mockube-snapshot"
VERSION: Final = 1


class UnreadableLine(Exception):
    """A line does not have this format; the message has the reason."""


class ArchiveHeader(Struct, frozen=True, kw_only=True):
    format: str
    version: int
    prefix: str
    """The prefix of all keys."""
    revision: int
    """The store's revision when it was read."""
    taken_at: str = msgspec.field(name="taken")
    """When the store was read, for information only."""


class Entry(Struct, frozen=True, kw_only=True, gc=False):
    key: bytes
    value: bytes
    ttl: int = 0
    """Seconds until the key expires; 0: never."""


class ArchiveTrailer(Struct, frozen=True, kw_only=True):
    count: int
    sha256: str


class _Line(Struct, frozen=True, kw_only=True):
    """An entry or the trailer, which is the line that has a count."""

    key: str = ""
    key_base64: str = ""
    value: Raw = Raw()
    value_base64: str = ""
    ttl: int = 0
    count: int | None = None
    sha256: str = ""


_encode = msgspec.json.Encoder().encode
_lines = msgspec.json.Decoder(_Line)
_headers = msgspec.json.Decoder(ArchiveHeader)
_raws = msgspec.json.Decoder(Raw)


def header_line(prefix: bytes, revision: int, taken_at: str) -> bytes:
    header = ArchiveHeader(
        format=FORMAT, version=VERSION, prefix=prefix.decode(), revision=revision, taken_at=taken_at
    )
    return _encode(header) + b"\n"


def entry_line(kv: KeyValue, ttl: int) -> bytes:
    expiry = {"ttl": ttl} if ttl else {}
    return _encode({**_key(kv.key), **_value(kv.value), **expiry}) + b"\n"


def trailer_line(count: int, sha256: str) -> bytes:
    return _encode(ArchiveTrailer(count=count, sha256=sha256)) + b"\n"


def read_header(line: bytes) -> ArchiveHeader:
    try:
        header = _headers.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableLine("is not a mockube snapshot") from error
    if header.format != FORMAT:
        raise UnreadableLine("is not a mockube snapshot")
    if header.version != VERSION:
        raise UnreadableLine(f"is a snapshot of format {header.version}; this mockube reads format {VERSION}")
    return header


def read_line(line: bytes) -> Entry | ArchiveTrailer:
    try:
        fields = _lines.decode(line)
        if fields.count is not None:
            return ArchiveTrailer(count=fields.count, sha256=fields.sha256)
        key = _from_base64(fields.key_base64) if fields.key_base64 else fields.key.encode()
        value = _from_base64(fields.value_base64) if fields.value_base64 else bytes(fields.value)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UnreadableLine("is damaged") from error
    if not key:
        raise UnreadableLine("is damaged")
    return Entry(key=key, value=value, ttl=fields.ttl)


def _key(key: bytes) -> Mapping[str, str]:
    try:
        return {"key": key.decode()}
    except UnicodeDecodeError:
        return {"key_base64": _base64(key)}


def _value(value: bytes) -> Mapping[str, Raw | str]:
    return {"value": Raw(value)} if _is_one_line_object(value) else {"value_base64": _base64(value)}


def _is_one_line_object(value: bytes) -> bool:
    """Return whether a value can be part of a JSON line without a change."""
    if value[:1] != b"{" or value[-1:] != b"}" or b"\n" in value:
        return False
    try:
        value.decode()
        _raws.decode(value)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return True


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_FOLDER = b"mockube-restoring"


class IncompleteRestore(KVError):
    """A restore into the store was begun and not completed."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"the restore of {source} was interrupted: restore it again, with --replace, before the store is used"
        )


def restore_marker_key(root: bytes) -> bytes:
    """Return the key that exists while the keys below `root` are being restored; its value names the source."""
    return _FOLDER + root


async def check_restore_complete(kv: KV, root: bytes, revision: Revision = HEAD) -> None:
    marks = (await kv.range(Range(key=restore_marker_key(root), revision=revision))).kvs
    if marks:
        raise IncompleteRestore(marks[0].value.decode(errors="replace"))
