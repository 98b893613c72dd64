"""A fake server of one resource, as a transport: it compacts its history and cuts connections on request."""

import asyncio
import contextlib
from collections import deque
from urllib.parse import parse_qs, urlsplit

import orjson

from mockube.client.wire import Unreachable
from tests.support.stores.scripted_transport import answer, problem

EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
INVALID = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "sendInitialEvents is forbidden"}
PAGE = 2
"""The maximum number of objects in a page, whatever limit is requested."""


class ForgetfulServer:
    host = "server:6443"

    def __init__(self, *, streams_lists):
        self.streams_lists = streams_lists
        self.revision = 1
        self.objects = {}
        self.away = 0
        """How many of the next requests are refused."""
        self.cuts = deque()
        """After how many bytes the next streams are cut, and what is deleted at that moment."""
        self.surprises = deque()
        """Objects that are deleted between the pages of a list, and whose deletions are then compacted."""
        self._events = []
        self._forgotten = 0
        self._snapshots = {}
        self._happened = asyncio.Event()

    # --- the test's side

    def put(self, name):
        self.revision += 1
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.objects[name] = self._tree(name)
        self._append_event(kind, self.objects[name])

    def delete(self, name):
        if name in self.objects:
            self.revision += 1
            del self.objects[name]
            self._append_event("DELETED", self._tree(name))

    def bookmark(self):
        self._append_event("BOOKMARK", {"metadata": {"resourceVersion": str(self.revision)}})

    def forget(self):
        self._forgotten = self.revision
        self._snapshots.clear()

    def delete_between_pages(self, name):
        self.surprises.append(name)

    def cut(self, after, name):
        self.cuts.append((after, name))
        self._wake()

    def _tree(self, name):
        metadata = {"namespace": "default", "name": name, "resourceVersion": str(self.revision)}
        return {"metadata": {**metadata, "uid": name}}

    def _append_event(self, kind, tree):
        self._events.append((self.revision, orjson.dumps({"type": kind, "object": tree}) + b"\n"))
        self._wake()

    def _wake(self):
        self._happened.set()
        self._happened = asyncio.Event()

    # --- the client's side

    async def send(self, request, headers):
        del headers
        self._refuse_if_away()
        query = parse_qs(urlsplit(request.target).query)
        if "continue" in query and self.surprises:
            self.delete(self.surprises.popleft())
            self.forget()
        if "continue" not in query:
            revision, start, objects = self.revision, 0, [*self.objects.values()]
            self._snapshots[revision] = objects
        else:
            revision, start = map(int, query["continue"][0].split("."))
            if revision not in self._snapshots:
                return problem(410, "Expired")
            objects = self._snapshots[revision]
        end = start + PAGE if "limit" in query else len(objects)
        more = f"{revision}.{end}" if end < len(objects) else ""
        metadata = {"resourceVersion": str(revision), "continue": more}
        return answer(body={"metadata": metadata, "items": objects[start:end]})

    @contextlib.asynccontextmanager
    async def stream(self, request, headers):
        del headers
        self._refuse_if_away()
        query = parse_qs(urlsplit(request.target).query)
        yield self._stream("sendInitialEvents" in query, int(query.get("resourceVersion", ["0"])[0]))

    def _stream(self, initial, start):
        if initial and not self.streams_lists:
            return _Refusal(422, INVALID)
        if not initial and start < self._forgotten:
            return _Refusal(410, EXPIRED)
        return _Watch(self, self._beginning() if initial else b"", self.revision if initial else start)

    def _beginning(self):
        added = [orjson.dumps({"type": "ADDED", "object": tree}) for tree in self.objects.values()]
        annotations = {"k8s.io/initial-events-end": "true"}
        end = {"metadata": {"resourceVersion": str(self.revision), "annotations": annotations}}
        return b"\n".join([*added, orjson.dumps({"type": "BOOKMARK", "object": end}), b""])

    def _refuse_if_away(self):
        if self.away:
            self.away -= 1
            raise Unreachable("refused")

    async def more(self, position, after):
        """Return the next events from a position of the history that are later than a revision, and the next position."""
        while len(self._events) == position and not self.cuts:
            await self._happened.wait()
        lines = [line for revision, line in self._events[position:] if revision > after]
        return b"".join(lines), len(self._events)


class _Refusal:
    def __init__(self, status, body):
        self.status = status
        self._body = body

    async def read(self):
        return orjson.dumps(self._body)


class _Watch:
    status = 200

    def __init__(self, server, beginning, after):
        self._server = server
        self._beginning = beginning
        self._after = after

    async def chunks(self):
        position, data = 0, self._beginning
        while True:
            if self._server.cuts:
                after, name = self._server.cuts.popleft()
                yield data[:after]
                self._server.delete(name)
                return
            yield data
            data, position = await self._server.more(position, self._after)
