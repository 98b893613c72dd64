"""A client that speaks SPDY to a cluster, as kubectl 1.29 and before do."""

import asyncio
import contextlib
from urllib.parse import urlencode

from mockube.kubelet.server import spdy
from mockube.kubelet.server.spdy import DataFrame, FrameReader, FrameWriter
from tests.support.processes.process import tls, token


class SpdyClient:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.frames, self.frame_writer = FrameReader(), FrameWriter()
        self.received = {}
        self.ended = set()

    @classmethod
    @contextlib.asynccontextmanager
    async def upgrade(cls, cluster, path, query, *, protocol="v4.channel.k8s.io"):
        host, port = cluster.url.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=tls(cluster.kubeconfig))
        writer.write(
            f"POST {path}?{urlencode(query)} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
            f"Authorization: Bearer {token(cluster.kubeconfig)}\r\nX-Stream-Protocol-Version: {protocol}\r\n\r\n".encode()
        )
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 101 "), head
            yield cls(reader, writer), head
        finally:
            writer.transport.abort()

    def open(self, number, **headers):
        self.writer.write(
            self.frame_writer.syn_stream(number, {k.replace("_", ""): v for k, v in headers.items()})
        )

    def send(self, number, data, *, last=False):
        self.writer.write(self.frame_writer.data(number, data, last=last))

    async def until_ended(self, *numbers):
        while not set(numbers) <= self.ended:
            data = await asyncio.wait_for(self.reader.read(65536), 10)
            assert data, "the session has ended"
            for frame in self.frames.feed(data):
                if isinstance(frame, DataFrame):
                    self.received[frame.stream] = self.received.get(frame.stream, b"") + frame.data
                    self.ended |= {frame.stream} if frame.is_last else set()
                elif frame.type == spdy.RST_STREAM:
                    self.ended.add(frame.stream)
