"""Reads what the server writes as a watch in protobuf."""

from mockube.apiserver.wire.protobuf.envelope import decode
from mockube.apiserver.wire.protobuf.varint import ProtobufError, read_parts

_HEADER = 4


def watch_events(stream):
    """Yield the type and the object of each event; raise ProtobufError for an incomplete frame."""
    position = 0
    while position < len(stream):
        start = position + _HEADER
        position = start + int.from_bytes(stream[position:start])
        if position > len(stream):
            raise ProtobufError("unexpected EOF")
        try:
            event = read_parts(stream[start:position])
            extension = read_parts(event.get(2, b""))
            event_type = event.get(1, b"").decode()
        except (IndexError, UnicodeError) as error:
            raise ProtobufError("malformed event") from error
        yield event_type, decode(extension.get(1, b""))
