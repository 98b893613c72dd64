"""The streams of exec, attach and port-forward over SPDY and WebSocket: what a client sends and what it receives."""

import asyncio

import pytest
from aiohttp import WSMsgType

from mockube.container_runtime.limits import MAX_UNREAD
from mockube.container_runtime.streams import ERROR, RESIZE, STDERR, STDIN, STDOUT, StreamsClosed
from mockube.kubelet.server import limits, port_forward, spdy
from mockube.kubelet.server.http_errors import HttpError
from mockube.kubelet.server.spdy import DataFrame, FrameReader, FrameWriter
from mockube.kubelet.server.spdy_session import SpdySession
from mockube.kubelet.server.spdy_streams import SpdyStreams
from mockube.kubelet.server.statuses import exit_status
from mockube.kubelet.server.websocket_streams import WebSocketStreams, decode_message, write_message
from tests.support.event_loop import yield_to_loop

SYN_REPLY, RESET, PING, GOAWAY = "reply", "reset", "ping", "goaway"
KINDS = {spdy.SYN_REPLY: SYN_REPLY, spdy.RST_STREAM: RESET, spdy.PING: PING, spdy.GOAWAY: GOAWAY}


class Carrier:
    """A connection on which a client has sent frames, and that records what it receives."""

    def __init__(self, *frames, is_broken=False):
        self._chunks, self._is_broken, self.written = [*frames], is_broken, b""
        self.is_closed = False

    async def read(self, _):
        return self._chunks.pop(0) if self._chunks else b""

    async def write(self, data):
        if self._is_broken:
            raise ConnectionError
        self.written += data

    async def close(self):
        self.is_closed = True

    @property
    def received(self):
        """The frames that the client gets: the stream with its data, `.` at its end, or a word."""
        return [
            (frame.stream, frame.data + (b"." if frame.is_last else b""))
            if isinstance(frame, DataFrame)
            else (frame.stream, KINDS[frame.type])
            for frame in FrameReader().feed(self.written)
        ]


def frames(*makers):
    """Return frames of one client, which share the state of the compression."""
    writer = FrameWriter()
    return [make(writer) for make in makers]


def opened(number, *, last=False, **headers):
    return lambda writer: writer.syn_stream(number, headers, last=last)


def data(number, content, *, last=False):
    return lambda writer: writer.data(number, content, last=last)


def reset(number):
    return lambda writer: writer.reset(number, 1)


def ping(writer):
    return writer.ping(7)


def goaway(writer):
    return writer.goaway(0)


SESSIONS = {
    "data of a stream": (
        [opened(1), data(1, b"ab"), data(1, b"c", last=True)],
        {1: b"abc"},
        [(1, SYN_REPLY)],
    ),
    "a stream that is opened with its end": ([opened(1, last=True)], {1: b""}, [(1, SYN_REPLY)]),
    "data of an unknown stream": ([opened(1), data(3, b"x", last=True)], {1: b""}, [(1, SYN_REPLY)]),
    "a stream that is opened twice": ([opened(1), opened(1)], {1: b""}, [(1, SYN_REPLY), (1, RESET)]),
    "a stream that the client resets": (
        [opened(1), data(1, b"x"), reset(1), reset(5), opened(1, last=True)],
        {1: b""},
        [(1, SYN_REPLY), (1, SYN_REPLY)],
    ),
    "a ping": ([ping], {}, [(0, PING)]),
    "an end without streams": ([goaway, ping], {}, []),
    "an end while a stream is open": ([opened(1), goaway, data(1, b"x")], {1: b"x"}, [(1, SYN_REPLY)]),
}


async def read_all(stream):
    content = b""
    while chunk := await stream.received.read(100):
        content += chunk
    return content


@pytest.mark.parametrize(("sent", "contents", "received"), SESSIONS.values(), ids=SESSIONS)
async def test_session(sent, contents, received):
    streams = {}

    async def note(stream):
        streams[stream.number] = stream

    carrier = Carrier(*frames(*sent))
    await SpdySession(carrier, note).run()
    assert {number: await read_all(stream) for number, stream in streams.items()} == contents
    assert all(stream.departure.is_set() for stream in streams.values())
    assert carrier.received == received


async def test_invalid_frame_ends_a_session_and_its_streams():
    streams = []

    async def note(stream):
        streams.append(stream)

    carrier = Carrier(*frames(opened(1)), b"GET / HTTP/1.1\r\n\r\n" * 100)
    await SpdySession(carrier, note).run()
    assert carrier.received == [(1, SYN_REPLY), (0, GOAWAY)]
    assert streams[0].departure.is_set()


async def test_client_that_reads_no_more_has_sent_what_it_has_sent():
    streams = []

    async def note(stream):
        streams.append(stream)

    session = SpdySession(Carrier(*frames(ping, opened(1)), is_broken=True), note)
    await session.run()
    assert streams == []
    with pytest.raises(StreamsClosed):
        await session.send_data(1, b"x")


async def test_stream_is_written_in_frames_until_its_end():
    carrier, streams = Carrier(*frames(opened(1))), []

    async def note(stream):
        streams.append(stream)
        await stream.write(b"x" * (32 * 1024 + 1))
        for _ in range(2):
            await stream.end()

    await SpdySession(carrier, note).run()
    assert carrier.received == [(1, SYN_REPLY), (1, b"x" * 32 * 1024), (1, b"x"), (1, b".")]
    with pytest.raises(StreamsClosed):
        await streams[0].write(b"x")
    await streams[0].end()
    assert len(carrier.received) == 4


# --- exec and attach over SPDY

ALL = frozenset({STDIN, STDOUT, STDERR, RESIZE})
V4, V1 = "v4.channel.k8s.io", "channel.k8s.io"
FAILED = exit_status(3)


async def spdy_streams(requested, protocol, *types):
    """Return the streams of a client that has opened some, with what it receives."""
    streams = SpdyStreams(frozenset(requested), protocol)
    sent = frames(*(opened(2 * number + 1, streamtype=each) for number, each in enumerate(types)))
    carrier = Carrier(*sent, *frames(data(1, b"in")))
    session = SpdySession(carrier, streams.add)
    reader = FrameReader()
    for chunk in sent:
        for frame in reader.feed(chunk):
            await session._receive(frame)
    return streams, carrier


@pytest.mark.parametrize(
    ("requested", "protocol", "types", "is_complete", "refused"),
    [
        (ALL, V4, ["error", "stdin", "stdout", "stderr", "resize"], True, []),
        (ALL, V4, ["error", "stdin", "stdout", "stderr"], False, []),
        (ALL, "v2.channel.k8s.io", ["error", "stdin", "stdout", "stderr"], True, []),
        (ALL, V1, ["error", "stdin", "stdout", "stderr"], True, []),
        (ALL, "v3.channel.k8s.io", ["error", "stdin", "stdout", "stderr"], False, []),
        ([STDOUT], V4, ["stdout"], False, []),
        ([STDOUT], V4, ["stdin", "stdout", "error", "error", "x"], True, [1, 7, 9]),
    ],
)
async def test_streams_that_a_client_opens(requested, protocol, types, is_complete, refused):
    streams, carrier = await spdy_streams(requested, protocol, *types)
    assert streams.complete.is_set() is is_complete
    assert [number for number, word in carrier.received if word == RESET] == refused
    assert (streams.stdin is not None) is ("stdin" in types and STDIN in requested)
    streams.time_out()
    assert (streams.is_timed_out, streams.complete.is_set()) == (not is_complete, True)


@pytest.mark.parametrize(
    ("protocol", "status", "sent"),
    [
        ("v5.channel.k8s.io", FAILED, FAILED),
        (V4, FAILED, FAILED),
        ("v3.channel.k8s.io", FAILED, b"command terminated with non-zero exit code: exit status 3"),
        (V4, b"", None),
    ],
)
async def test_end_of_a_command_over_spdy(protocol, status, sent):
    streams, carrier = await spdy_streams([STDIN, STDOUT], protocol, "stdin", "stdout", "error")
    await streams.write(STDOUT, b"out")
    await streams.write(STDERR, b"nobody asked for it")
    await streams.stdin.feed(b"unread")
    await streams.finish(status)
    replies = [(number, SYN_REPLY) for number in (1, 3, 5)]
    error = [] if sent is None else [(5, sent)]
    assert carrier.received == [*replies, (3, b"out"), *error, (1, b"."), (3, b"."), (5, b".")]
    assert streams.stdin.is_ready
    assert await streams.stdin.read(9) == (b"" if status else b"unread")


async def test_sizes_of_a_terminal_over_spdy():
    streams, _ = await spdy_streams([STDOUT, RESIZE], V4, "stdout", "error", "resize")
    await streams._streams[RESIZE].receiver.feed(b'{"Width":80,"Height":24}')
    assert (await streams.sizes.next()).width == 80


# --- exec and attach over WebSocket


class Socket:
    """A WebSocket on which a client has sent messages, and that records what it receives."""

    def __init__(self, protocol, *messages, is_broken=False):
        self.ws_protocol, self._messages, self._is_broken = protocol, [*messages], is_broken
        self.sent, self.is_closed = [], False

    async def receive(self):
        if not self._messages:
            return _Message(WSMsgType.CLOSED, None)
        content = self._messages.pop(0)
        return content if isinstance(content, _Message) else _Message(WSMsgType.BINARY, content)

    async def send_bytes(self, content):
        if self._is_broken:
            raise ConnectionError
        self.sent.append(content)

    send_str = send_bytes

    async def close(self):
        self.is_closed = True


class _Message:
    def __init__(self, kind, content):
        self.type, self.data = kind, content


V5, BASE64 = "v5.channel.k8s.io", "base64.channel.k8s.io"
SIZE = b'{"Width":80,"Height":24}'


@pytest.mark.parametrize(
    ("protocol", "messages", "stdin", "width"),
    [
        (V4, [b"\0a", b"\0b"], b"ab", None),
        (V4, [b"\0a", b"", b"\1x", b"\4" + SIZE], b"a", 80),
        (V4, [b"\0a", b"\xff\0", b"\0b"], b"ab", None),
        (V5, [b"\0a", b"\xff\0", b"\0b", b"\4" + SIZE], b"a", 80),
        (V5, [b"\xff\1", b"\0b"], b"b", None),
        (V5, [b"\0a", b"\xff\5", b"\0b"], b"a", None),
        (V5, [b"\0a", b"\xff", b"\0b"], b"a", None),
        (V5, [b"\0a", b"\xff\0\0", b"\0b"], b"a", None),
        (BASE64, ["0YQ==", "x", "0!", "0YQ=="], b"aa", None),
        *(
            (V4, [b"\0a", _Message(kind, b""), b"\0b"], b"a", None)
            for kind in (WSMsgType.CLOSE, WSMsgType.CLOSING)
        ),
        *(
            (V4, [b"\0a", _Message(kind, b""), b"\0b"], b"a", None)
            for kind in (WSMsgType.CLOSED, WSMsgType.ERROR)
        ),
    ],
)
async def test_messages_of_a_client(protocol, messages, stdin, width):
    streams = WebSocketStreams(Socket(protocol, *messages), ALL)
    await streams.listen()
    await streams.stdin.end()
    await streams.sizes.end()
    found = b""
    while chunk := await streams.stdin.read(9):
        found += chunk
    size = await streams.sizes.next()
    assert (found, size and size.width) == (stdin, width)


async def test_input_that_was_not_requested_is_dropped():
    streams = WebSocketStreams(Socket(V5, b"\0a", b"\xff\0", b"\4" + SIZE), frozenset({STDOUT}))
    await streams.listen()
    assert streams.stdin is None
    assert (await streams.sizes.next()).height == 24


@pytest.mark.parametrize(
    ("requested", "first"),
    [([STDIN, STDOUT, STDERR], b"\1"), ([STDERR], b"\2"), ([STDIN], b"\3"), ([STDIN, RESIZE], b"\3")],
)
async def test_first_message_to_a_client_is_empty(requested, first):
    socket = Socket(V4)
    await WebSocketStreams(socket, frozenset(requested)).start()
    assert socket.sent == [first]


@pytest.mark.parametrize(
    ("protocol", "status", "sent"),
    [
        (V5, FAILED, b"\3" + FAILED),
        (V4, FAILED, b"\3" + FAILED),
        (V1, FAILED, b"\3command terminated with non-zero exit code: exit status 3"),
        (V4, b"", None),
        (V1, exit_status(0), None),
    ],
)
async def test_end_of_a_command_over_websocket(protocol, status, sent):
    socket = Socket(protocol)
    streams = WebSocketStreams(socket, frozenset({STDIN, STDOUT}))
    await streams.write(STDOUT, b"out")
    await streams.write(STDOUT, b"")
    await streams.write(STDERR, b"nobody asked for it")
    await streams.stdin.feed(b"unread")
    for _ in range(2):
        await streams.finish(status)
    assert socket.sent == [b"\1out", *([] if sent is None else [sent])]
    assert socket.is_closed
    assert await streams.stdin.read(9) == (b"" if status else b"unread")
    with pytest.raises(StreamsClosed):
        await streams.write(STDOUT, b"late")


async def test_client_that_has_left_receives_nothing():
    with pytest.raises(StreamsClosed):
        await write_message(Socket(V4, is_broken=True), STDOUT, b"x")
    await WebSocketStreams(Socket(V4, is_broken=True), ALL).finish(FAILED)


async def test_messages_of_text_protocols_are_base64():
    socket = Socket(BASE64)
    await write_message(socket, ERROR, b"abc")
    assert socket.sent == ["3YWJj"]
    assert decode_message(socket, b"3YWJj") == b"\3abc"
    assert decode_message(Socket(V4), "\1x") == b"\1x"


# --- port-forward


def echo(problem=""):
    async def connect(port, client):
        if problem:
            return problem
        while chunk := await client.read(100):
            await client.write(b"%d:" % port + chunk)
        return ""

    return connect


async def fail(*_):
    raise ValueError("no")


def pair(number, port="80", *, request=None, first="error"):
    """Return the two streams of a forwarded connection."""
    headers = {"port": port, **({"requestid": request} if request else {})}
    second = "data" if first == "error" else "error"
    return [
        opened(number, streamtype=first, **headers),
        opened(number + 2, streamtype=second, **headers),
    ]


REPLIES = [(1, SYN_REPLY), (3, SYN_REPLY)]
FORWARDS = {
    "data": ([*pair(1), data(3, b"x", last=True)], echo(), [*REPLIES, (3, b"80:x"), (3, b"."), (1, b".")]),
    "data before errors, with an id": (
        [*pair(1, request="a", first="data"), data(1, b"x", last=True)],
        echo(),
        [*REPLIES, (1, b"80:x"), (1, b"."), (3, b".")],
    ),
    "a refused connection": (pair(1), echo("refused"), [*REPLIES, (1, b"refused"), (3, b"."), (1, b".")]),
    "an error of the server": (
        pair(1),
        fail,
        [*REPLIES, (1, b"an internal error: ValueError: no"), (3, b"."), (1, b".")],
    ),
    **{
        f"port {port or 'none'}": (
            [opened(1, streamtype="data", port=port)],
            echo(),
            [(1, SYN_REPLY), (1, RESET)],
        )
        for port in ("", "0", "65536", "http")
    },
    "another type": ([opened(1, streamtype="x", port="80")], echo(), [(1, SYN_REPLY), (1, RESET)]),
    "pairs without ids at the same time": (
        [
            pair(1)[0],
            pair(5, "81")[0],
            pair(1)[1],
            pair(5, "81")[1],
            data(7, b"x", last=True),
            data(3, b"", last=True),
        ],
        echo(),
        [
            (1, SYN_REPLY),
            (5, SYN_REPLY),
            (3, SYN_REPLY),
            (7, SYN_REPLY),
            (7, b"81:x"),
            (7, b"."),
            (5, b"."),
            (3, b"."),
            (1, b"."),
        ],
    ),
    "the same streams once more": (
        [*pair(1), data(3, b"x", last=True), *pair(1), data(3, b"y", last=True)],
        echo(),
        [
            *REPLIES,
            (3, b"80:x"),
            (3, b"."),
            (1, b"."),
            *REPLIES,
            (3, b"80:y"),
            (3, b"."),
            (1, b"."),
        ],
    ),
    "much on the stream of errors": (
        [*pair(1), *[data(1, b"x" * MAX_UNREAD)] * 3, data(3, b"x", last=True)],
        echo(),
        [*REPLIES, (3, b"80:x"), (3, b"."), (1, b".")],
    ),
    "much to a connection that nothing reads": (
        [*pair(1), *[data(3, b"x" * MAX_UNREAD)] * 3, ping],
        echo("refused"),
        [*REPLIES, (1, b"refused"), (3, b"."), (1, b"."), (0, PING)],
    ),
    "two streams of a type": (
        [opened(number, streamtype="data", port="80", requestid="a") for number in (1, 3)],
        echo(),
        [*REPLIES, (3, RESET)],
    ),
}


@pytest.mark.parametrize(("sent", "connect", "received"), FORWARDS.values(), ids=FORWARDS)
async def test_forwarded_connection(sent, connect, received, caplog):
    class Patient(Carrier):
        async def read(self, limit):
            chunk = await super().read(limit)
            await yield_to_loop(20)
            return chunk

    carrier = Patient(*frames(*sent))
    await port_forward._SpdyForwarder(connect).run(carrier, carrier.close)
    assert carrier.received == received
    assert carrier.is_closed
    assert bool(caplog.records) is (connect is fail)


async def late_end(received, client):
    """Receive what a client sends, some time after its end."""
    while chunk := await client.read(100):
        received.append(chunk)
    await yield_to_loop(50)
    received.append(b".")
    return ""


async def test_connection_goes_on_after_its_session():
    received = []
    carrier = Carrier(*frames(*pair(1), data(3, b"x", last=True)))
    forwarder = port_forward._SpdyForwarder(lambda _, client: late_end(received, client))
    await forwarder.run(carrier, carrier.close)
    assert received == [b"x", b"."]
    assert forwarder._tasks == set()


async def endless(ends, _client):
    try:
        await asyncio.Event().wait()
    finally:
        ends.append("cancelled")


async def test_connection_ends_with_the_server():
    ends = []
    carrier = Carrier(*frames(*pair(1), *pair(5)))
    forwarder = port_forward._SpdyForwarder(lambda _, client: endless(ends, client))
    task = asyncio.create_task(forwarder.run(carrier, carrier.close))
    await yield_to_loop(20)
    task.cancel()
    await asyncio.wait([task])
    assert ends == ["cancelled"] * 2


async def test_half_connections_have_a_maximum():
    number = limits.MAX_FORWARDED_PAIRS
    sent = [
        opened(2 * each + 1, streamtype="error", port="80", requestid=str(each)) for each in range(number + 1)
    ]
    carrier = Carrier(*frames(*sent))
    await port_forward._SpdyForwarder(echo()).run(carrier, carrier.close)
    assert [stream for stream, word in carrier.received if word == RESET] == [2 * number + 1]


@pytest.mark.parametrize(
    ("ports", "messages", "connect", "sent"),
    [
        ([80], [b"\0x"], echo(), [b"\0P\0", b"\1P\0", b"\x0080:x"]),
        (
            [80, 258],
            [b"\2x", b"\1y", b"\x09z", b""],
            echo(),
            [b"\0P\0", b"\1P\0", b"\2\2\1", b"\3\2\1", b"\x02258:x"],
        ),
        ([80], [], echo("refused"), [b"\0P\0", b"\1P\0", b"\1refused"]),
        (
            [80],
            [*[b"\1" + b"x" * MAX_UNREAD] * 3, b"\0x"],
            echo(),
            [b"\0P\0", b"\1P\0", b"\x0080:x"],
        ),
        ([80], [], fail, [b"\0P\0", b"\1P\0", b"\1an internal error: ValueError: no"]),
    ],
    ids=["one port", "two ports", "refused", "much on the channel of errors", "error of the server"],
)
async def test_forwarded_channels(ports, messages, connect, sent):
    socket = Socket("v4.channel.k8s.io", *messages)
    await port_forward._serve_channels(socket, ports, connect)
    assert socket.sent == sent
    assert socket.is_closed


async def test_channel_that_nothing_reads_does_not_delay_another():
    async def connect(port, client):
        return "refused" if port == 80 else await echo()(port, client)

    socket = Socket("v4.channel.k8s.io", *[b"\0" + b"x" * MAX_UNREAD] * 3, b"\2x")
    await port_forward._serve_channels(socket, [80, 81], connect)
    assert socket.sent[4:] == [b"\1refused", b"\x0281:x"]


async def test_channels_go_on_after_the_client_has_left():
    received = []
    socket = Socket("v4.channel.k8s.io", b"\0x")
    await port_forward._serve_channels(socket, [80], lambda _, client: late_end(received, client))
    assert received == [b"x", b"."]


async def test_error_of_the_channels_is_sent_for_each_port():
    ends = []
    socket = Socket("v4.channel.k8s.io")
    socket.receive = fail
    await port_forward._serve_channels(socket, [80, 81], lambda _, client: endless(ends, client))
    error = b"an internal error: ValueError: no"
    assert socket.sent[4:] == [b"\1" + error, b"\3" + error]
    assert ends == ["cancelled"] * 2


async def test_channels_end_with_the_server():
    ends = []
    socket = Socket("v4.channel.k8s.io")
    socket.receive = asyncio.Event().wait
    task = asyncio.create_task(
        port_forward._serve_channels(socket, [80, 81], lambda _, client: endless(ends, client))
    )
    await yield_to_loop(20)
    task.cancel()
    await asyncio.wait([task])
    assert ends == ["cancelled"] * 2


@pytest.mark.parametrize(
    ("texts", "ports"),
    [
        (["80"], [80]),
        (["80,81", "65535"], [80, 81, 65535]),
        (["80"] * 64, [80] * 64),
        ([], None),
        (["0"], None),
        (["65536"], None),
        (["80,http"], None),
        (["80"] * 65, None),
    ],
)
def test_ports_of_a_query(texts, ports):
    if ports is None:
        with pytest.raises(HttpError, match='query parameter "port" is required'):
            port_forward._ports(texts)
    else:
        assert port_forward._ports(texts) == ports


async def test_tunnel_carries_the_messages_of_a_websocket():
    socket = Socket("", b"", "text", b"ab", _Message(WSMsgType.CLOSE, b""), b"late")
    tunnel = port_forward._TunnelStream(socket)
    assert [await tunnel.read(9), await tunnel.read(9)] == [b"ab", b""]
    await tunnel.write(b"x")
    await tunnel.close()
    assert (socket.sent, socket.is_closed) == ([b"x"], True)
