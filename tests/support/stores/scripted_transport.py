"""A transport whose server is the test: it scripts the response to each request, and feeds the streams."""

import asyncio
import contextlib
from collections import deque

import orjson

from mockube.client.wire import Response


def answer(status=200, body=None, *, retry_after=None):
    return Response(status, retry_after, orjson.dumps({} if body is None else body))


def problem(status, reason, message="", **details):
    body = {"kind": "Status", "code": status, "reason": reason, "message": message, "details": details}
    return answer(status, body)


class ScriptedTransport:
    """A request that is not scripted fails at once. Streams are opened in the order in which they were scripted."""

    host = "server:6443"

    def __init__(self):
        self.outcomes = deque()
        self.streams = deque()
        self.sent = []

    def will(self, *outcomes):
        """An `Response` is returned, an exception raised."""
        self.outcomes.extend(outcomes)
        return self

    def will_stream(self, *streams):
        self.streams.extend(streams)
        return streams[0] if len(streams) == 1 else streams

    async def send(self, request, headers):
        self.sent.append((request, headers))
        return _raise_or_return(self.outcomes.popleft())

    @contextlib.asynccontextmanager
    async def stream(self, request, headers):
        self.sent.append((request, headers))
        yield _raise_or_return(self.streams.popleft())

    async def close(self):
        pass

    @property
    def targets(self):
        return [f"{request.method} {request.target}" for request, _ in self.sent]

    @property
    def tokens(self):
        return [headers.get("Authorization", "").removeprefix("Bearer ") for _, headers in self.sent]


def _raise_or_return(outcome):
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class ScriptedStream:
    """A stream that the test feeds: events by `send_event`, bytes by `feed`, and its end by `cut`."""

    def __init__(self, status=200, body=None):
        self.status = status
        self._body = orjson.dumps(body)
        self._chunks = asyncio.Queue()

    def send_event(self, kind, tree):
        self.feed(orjson.dumps({"type": kind, "object": tree}) + b"\n")
        return self

    def feed(self, chunk):
        self._chunks.put_nowait(chunk)
        return self

    def cut(self):
        self._chunks.put_nowait(None)
        return self

    async def chunks(self):
        while (chunk := await self._chunks.get()) is not None:
            yield chunk

    async def read(self):
        return self._body
