r"""Objects and watch events in protobuf: the functions that the rest of the server uses.

An object is the prefix `k8s\0` and a `runtime.Unknown`, which has the kind, the apiVersion and the bytes of the message. A
watch is a sequence of frames: four bytes of length, and a WatchEvent, which has no prefix itself, but its object has one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from .decode import decoder
from .encode import encoder
from .forms import Json
from .scalars import write_string
from .tables import MAX_DEPTH, message_of
from .varint import LENGTH, ProtobufError, bytes_field, read_parts, tag_of, varint

MAGIC = b"k8s\0"

_TYPE_META, _RAW, _CONTENT_ENCODING, _CONTENT_TYPE = 1, 2, 3, 4  # runtime.Unknown
_API_VERSION, _KIND = 1, 2  # runtime.TypeMeta
_EVENT_TYPE, _EVENT_OBJECT = 1, 2  # WatchEvent
_EXTENSION_RAW = 1  # runtime.RawExtension
_FRAME_HEADER = 4
_META_V1BETA1 = "meta.k8s.io/v1beta1"


def is_protobuf(data: bytes) -> bool:
    """Return whether a value in etcd is protobuf; otherwise it is JSON."""
    return data.startswith(MAGIC)


def decode(data: bytes, *, api_version: str = "", kind: str = "") -> dict[str, Json]:
    """Return an object as a JSON tree. `api_version` and `kind` are the defaults of a missing type."""
    if not data:
        raise ProtobufError("empty data")
    if not is_protobuf(data):
        raise ProtobufError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    if data == MAGIC:
        raise ProtobufError("empty body")
    with _converted_errors():
        unknown = read_parts(data[len(MAGIC) :])
        type_meta = read_parts(unknown.get(_TYPE_META, b""))
        api_version = type_meta.get(_API_VERSION, b"").decode() or api_version
        kind = type_meta.get(_KIND, b"").decode() or kind
        read = decoder(message_of(api_version, kind))
        members: dict[str, Json] = read(unknown.get(_RAW, b""), MAX_DEPTH)
    return {"kind": kind, "apiVersion": api_version} | members


def encode(tree: dict[str, Json]) -> bytes:
    return _start(tree) + bytes_field(_RAW, _message(tree)) + _END


def encode_item(tree: dict[str, Json]) -> bytes:
    """Encode an object as an item of a list."""
    return bytes_field(_items_number(tree), _message(tree))


def encode_list(head: dict[str, Json], items: Sequence[bytes]) -> list[bytes]:
    """Return the parts of a list of encoded items, together the same bytes as `encode`'s; `head` is the list without items."""
    metadata = _message(head)
    size = varint(len(metadata) + sum(map(len, items)))
    start = _start(head) + varint(tag_of(_RAW, LENGTH)) + size
    if _items_number(head) == 1:
        return [start, *items, metadata + _END]
    return [start + metadata, *items, _END]


def _items_number(tree: dict[str, Json]) -> int:
    """Return the field number of the items of a list, by the list or by an item: metadata is the other of 1 and 2."""
    return 1 if tree.get("apiVersion") == _META_V1BETA1 else 2


def _message(tree: dict[str, Json]) -> bytes:
    with _converted_errors():
        # Lists of API versions, for example, may omit their own version, because they are older than versions.
        return encoder(message_of(tree.get("apiVersion", "v1"), tree.get("kind", "")))(tree, MAX_DEPTH)


def _start(tree: dict[str, Json]) -> bytes:
    """Return the bytes before an object's message."""
    with _converted_errors():
        type_meta = _string(_API_VERSION, tree.get("apiVersion", "")) + _string(_KIND, tree.get("kind", ""))
    return MAGIC + bytes_field(_TYPE_META, type_meta)


def watch_frame(event_type: str, encoded: bytes) -> bytes:
    """Return the frame of an event with an object that `encode` has encoded."""
    extension = bytes_field(_EXTENSION_RAW, encoded)
    event = _string(_EVENT_TYPE, event_type) + bytes_field(_EVENT_OBJECT, extension)
    return len(event).to_bytes(_FRAME_HEADER) + event


@contextmanager
def _converted_errors() -> Iterator[None]:
    """Convert Python's errors for missing bytes and invalid UTF-8, which the decoders do not check themselves."""
    try:
        yield
    except IndexError as error:
        raise ProtobufError("unexpected EOF") from error
    except UnicodeError as error:
        raise ProtobufError(f"invalid UTF-8: {error}") from error


def _string(number: int, value: Json) -> bytes:
    return varint(tag_of(number, LENGTH)) + write_string(value)


_END = bytes_field(_CONTENT_ENCODING, b"") + bytes_field(_CONTENT_TYPE, b"")
"""The bytes after an object's message."""
