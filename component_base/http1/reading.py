"""Reads messages: a caller adds bytes, and gets heads, pieces of bodies and ends. As h11, but for one side of a connection.

No input of a hostile peer needs more memory than one call of `receive` brings and the limit of a head. What is refused raises a
ProtocolError, after which the connection has to be closed.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, Generic

from . import heads, requests
from .heads import Head, IncompleteMessage, MessageTooLong, ProtocolError, RequestHead, ResponseHead
from .states import TRANSITIONS, State, Trigger

MAX_HEAD_BYTES: Final = 1 << 16
"""The maximum length of a start line and the headers, of all 1xx responses together with the response, and of trailers."""
MAX_LINE_BYTES: Final = 1 << 12
"""The maximum length of a line between chunks, as in Go."""
MAX_EXCESS_BYTES: Final = 1 << 14
"""The limit of what chunks have besides their data, as in Go: 16 bytes for each, and twice its data, do not count."""
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*|;[^\r\n]*)")
_STATUSES_WITHOUT_BODY: Final = frozenset({204, 304})
_SWITCHING_PROTOCOLS: Final = 101


class Signal(Enum):
    NEED_DATA = auto()
    """The next bytes are needed."""
    END = auto()
    """The message is complete."""


NEED_DATA: Final = Signal.NEED_DATA
END: Final = Signal.END


class MessageReader(Generic[Head]):
    """Reads the messages that one side of a connection sends."""

    kind = "message"

    # Attributes of the class: a reader is made for each request of a client, and most do not change.
    state = State.HEAD
    keeps_open = False
    """Whether the head allows another message after this one."""
    _data = b""
    _at = 0
    """The position up to which the data were read."""
    _searched = 0
    """The position up to which there is no end of a head."""
    _is_ended = False
    """Whether the other side sends no more."""
    _missing = 0
    """Bytes of the counted body or chunk that were not read yet."""
    _head_bytes = 0
    """Bytes of 1xx responses, or of trailers."""
    _excess = 0
    _chunk_size = _CHUNK_SIZE
    _skips_empty_lines = False

    def receive(self, data: bytes) -> None:
        """Add bytes; no bytes mean that the other side sends no more."""
        if not data:
            self._is_ended = True
        elif self._at == len(self._data):
            self._data, self._at, self._searched = data, 0, 0
        else:
            self._searched -= min(self._at, self._searched)
            self._data, self._at = self._data[self._at :] + data, 0

    def next_event(self) -> Head | bytes | Signal:
        """Return the next head, piece of a body, END, or NEED_DATA; raise a ProtocolError for what is refused."""
        event: Head | bytes | Signal | None = None
        try:
            while event is None:
                event = _READERS[self.state](self)
        except ProtocolError:
            self._move(Trigger.MALFORMED)
            raise
        if event is NEED_DATA and self._is_ended:
            has_begun = self.state is not State.HEAD or self._at < len(self._data)
            self._move(Trigger.END)
            if self.state is State.FAILED:
                raise IncompleteMessage(self.kind, has_begun=has_begun)
            return END
        return event

    def take_rest(self) -> bytes:
        """Return what was received beyond the message, once."""
        rest, self._data, self._at, self._searched = self._data[self._at :], b"", 0, 0
        return rest

    @property
    def unread(self) -> int:
        """The number of bytes that are held, because a part of a message that they begin is not complete."""
        return len(self._data) - self._at

    @property
    def is_reusable(self) -> bool:
        """Whether another message may follow on the connection, and no byte of it has come too early."""
        return self.state is State.DONE and self.keeps_open and self._at == len(self._data)

    def expect_next(self) -> None:
        """Begin to read the next message."""
        self._move(Trigger.NEXT)
        self._head_bytes = self._excess = 0

    def _move(self, trigger: Trigger) -> None:
        self.state = TRANSITIONS[self.state][trigger]

    def _parse(self, raw: bytes) -> Head:
        raise NotImplementedError

    def _framing(self, head: Head) -> Trigger:
        """Return what follows a head."""
        raise NotImplementedError

    def _read_head(self) -> Head | Signal:
        data, at = self._data, self._at
        while self._skips_empty_lines and data.startswith(b"\r\n", at):
            self._at = at = at + 2
        start = max(self._searched, at)
        end = data.find(b"\n\r\n", start)
        bare = data.find(b"\n\n", start, None if end < 0 else end)
        after = bare + 2 if bare >= 0 else end + 3 if end >= 0 else 0
        size = self._head_bytes + (after or len(data)) - at
        if size > MAX_HEAD_BYTES:
            raise MessageTooLong(f"the {self.kind} header is too long", 431)
        if not after:
            if at < len(data):
                heads.check_beginning(data[at : at + MAX_LINE_BYTES], self.kind)
            self._searched = max(len(data) - 2, at)
            return NEED_DATA
        head = self._parse(data[at:after])
        self._at = self._searched = after
        trigger = self._framing(head)
        self._move(trigger)
        if trigger is Trigger.INFORMATIONAL:
            self._head_bytes = size
        elif self._head_bytes:
            self._head_bytes = 0
        return head

    def _check_trailer(self, line: bytes, *, is_first: bool) -> None:
        heads.check_trailer(line, self.kind, is_first=is_first)

    def _body_framing(self, head: Head) -> Trigger | None:
        """Return how the headers frame a body; None if they do not."""
        fields = head.fields
        encoding, length = fields.get(b"transfer-encoding"), fields.get(b"content-length")
        if encoding is not None and not head.is_1_0:  # as Go, one of HTTP/1.0 is ignored
            if encoding.lower() != b"chunked":
                raise ProtocolError(f"the {self.kind} is encoded as {encoding[:100]!r}")
            self.keeps_open = self.keeps_open and length is None
            return Trigger.CHUNKED
        if length is None:
            return None
        if not _LENGTH.fullmatch(length):
            first, *others = {part.strip(b" \t") for part in length.split(b",")}
            if others or not _LENGTH.fullmatch(first):
                raise ProtocolError(f"the {self.kind} has a length of {length[:100]!r}")
            length = first
        self._missing = int(length)
        return Trigger.COUNTED if self._missing else Trigger.WITHOUT_BODY

    def _read_counted(self) -> bytes | Signal:
        data, at = self._data, self._at
        part = data[at : at + self._missing]
        self._at = at + len(part)
        self._missing -= len(part)
        if not self._missing:
            self._move(Trigger.ALL_BYTES)
        return part or NEED_DATA

    def _read_to_end(self) -> bytes | Signal:
        part, self._at = self._data[self._at :], len(self._data)
        return part or NEED_DATA

    def _read_end(self) -> Signal:
        return END

    def _read_failed(self) -> Signal:
        raise ProtocolError(f"an earlier part of the {self.kind} was malformed")

    def _read_line(self) -> bytes | None:
        """Return the next line between chunks, which ends with CRLF; None if it is not complete."""
        end = self._data.find(b"\r\n", self._at)
        if (len(self._data) if end < 0 else end) - self._at > MAX_LINE_BYTES:
            raise MessageTooLong(f"a line between chunks of the {self.kind} is too long")
        if end < 0:
            return None
        line, self._at = self._data[self._at : end], end + 2
        return line

    def _read_chunk_size(self) -> Signal | None:
        line = self._read_line()
        if line is None:
            return NEED_DATA
        matched = self._chunk_size.fullmatch(line)
        if matched is None:
            raise ProtocolError(f"a chunk of the {self.kind} has a size of {line[:100]!r}")
        self._missing = size = int(matched[1], 16)
        self._excess = max(self._excess + len(line) + 4 - 16 - 2 * size, 0)
        if self._excess > MAX_EXCESS_BYTES:
            raise ProtocolError(f"the chunks of the {self.kind} contain too much besides their data")
        self._move(Trigger.SIZE if size else Trigger.LAST_SIZE)
        return None

    def _read_chunk_end(self) -> Signal | None:
        end = self._data[self._at : self._at + 2]
        if not b"\r\n".startswith(end):
            rest = self._data[self._at : self._at + 100]
            raise ProtocolError(f"a chunk of the {self.kind} is longer than its size: {rest!r}")
        if len(end) < 2:
            return NEED_DATA
        self._at += 2
        self._move(Trigger.LINE_BREAK)
        return None

    def _read_trailers(self) -> Signal | None:
        line = self._read_line()
        if line is None:
            return NEED_DATA
        is_first = not self._head_bytes
        self._head_bytes += len(line) + 2
        if self._head_bytes > MAX_HEAD_BYTES:
            raise MessageTooLong(f"the trailers of the {self.kind} are too long")
        if line:
            self._check_trailer(line, is_first=is_first)
        else:
            self._move(Trigger.EMPTY_LINE)
        return None


_READERS: Final[Mapping[State, Callable[..., Any]]] = {
    State.HEAD: MessageReader._read_head,  # noqa: SLF001 - of this module
    State.LENGTH: MessageReader._read_counted,  # noqa: SLF001
    State.CHUNK_SIZE: MessageReader._read_chunk_size,  # noqa: SLF001
    State.CHUNK: MessageReader._read_counted,  # noqa: SLF001
    State.CHUNK_END: MessageReader._read_chunk_end,  # noqa: SLF001
    State.TRAILERS: MessageReader._read_trailers,  # noqa: SLF001
    State.TO_END: MessageReader._read_to_end,  # noqa: SLF001
    State.DONE: MessageReader._read_end,  # noqa: SLF001
    State.SWITCHED: MessageReader._read_end,  # noqa: SLF001
    State.FAILED: MessageReader._read_failed,  # noqa: SLF001
}
"""What reads in each state. None: the state has changed, and there is no event."""


class ResponseReader(MessageReader[ResponseHead]):
    """Reads the response to one request, and the 1xx responses before it, which are events, too."""

    kind = "response"

    def __init__(self, method: str = "GET") -> None:
        """Create a reader of the response to a request with this method: that to HEAD has no body."""
        self._is_head = method == "HEAD"

    def _parse(self, raw: bytes) -> ResponseHead:
        return heads.parse_response(raw)

    def _framing(self, head: ResponseHead) -> Trigger:
        status = head.status
        if status < 200:
            return Trigger.SWITCHING if status == _SWITCHING_PROTOCOLS else Trigger.INFORMATIONAL
        self.keeps_open = _keeps_open(head)
        if self._is_head or status in _STATUSES_WITHOUT_BODY:
            return Trigger.WITHOUT_BODY
        framing = self._body_framing(head)
        if framing is None:
            self.keeps_open = False
            return Trigger.UNCOUNTED
        return framing


class RequestReader(MessageReader[RequestHead]):
    """Reads the requests of a connection, one after the other. Empty lines between them are ignored, as RFC 9112 wants."""

    kind = "request"
    _skips_empty_lines = True

    def _parse(self, raw: bytes) -> RequestHead:
        return heads.parse_request(raw)

    def _framing(self, head: RequestHead) -> Trigger:
        self.keeps_open = _keeps_open(head)
        return self._body_framing(head) or Trigger.WITHOUT_BODY


class StrictRequestReader(RequestReader):
    """Reads requests that are forwarded: what two servers could read in two ways is refused, as `requests` says."""

    _chunk_size = requests.CHUNK_SIZE

    def _parse(self, raw: bytes) -> RequestHead:
        requests.check_version(raw)
        head = super()._parse(raw)
        requests.check(head)
        return head

    def _check_trailer(self, line: bytes, *, is_first: bool) -> None:
        del is_first
        requests.check_trailer(line)


def _keeps_open(head: ResponseHead | RequestHead) -> bool:
    connection = head.fields.get(b"connection")
    if head.is_1_0:
        return False
    return connection is None or b"close" not in {
        word.strip(b" \t") for word in connection.lower().split(b",")
    }
