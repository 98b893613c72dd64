"""Reads what the server writes as a watch in protobuf."""

from mockube.apiserver.wire.protobuf.envelope import decode
from mockube.apiserver.wire.protobuf.varint import ProtobufError, read_parts

_HEADER = 4


def watch_events(stream):
    """Yield the type and the object of each event; raise ProtobufError for an incomplete frame."""
    at = 0
    while at < len(stream):
        start = at + _HEADER
        at = start + int.from_bytes(stream[at:start])
        if at > len(stream):
            raise ProtobufError("unexpected EOF")
        try:
            event = read_parts(stream[start:at])
            extension = read_parts(event.get(2, b""))
            event_type = event.get(1, b"").decode()
        except (IndexError, UnicodeError) as error:
            raise ProtobufError("malformed event") from error
        yield event_type, decode(extension.get(1, b""))
