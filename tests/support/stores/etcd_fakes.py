"""A fake member of an etcd cluster with scripted responses, in place of a gateway and its streams."""

import asyncio

import orjson

HANG = object()
"""As an outcome: no response, ever."""


class FakeGateway:
    """Returns the next of its outcomes for each call, and repeats the last one; an exception is raised."""

    def __init__(self, *outcomes, endpoint="fake:2379", streams=()):
        self.endpoint = endpoint
        self.outcomes = list(outcomes)
        self.streams = list(streams)
        self.token = None
        self.requests = []
        """The path of each call, with its token."""
        self.bodies = []

    async def call(self, method, body):
        self._note(method.path, body)
        outcome = self.outcomes[0]
        if len(self.outcomes) > 1:
            del self.outcomes[0]
        if outcome is HANG:
            await asyncio.Event().wait()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def open_stream(self, path, body):
        self._note(path, body)
        return self.streams.pop(0)

    async def close(self):
        pass

    def _note(self, path, body):
        self.requests.append((path, self.token))
        self.bodies.append(body)


class FakeStream:
    """Yields the messages that a test puts into it; an exception is raised."""

    def __init__(self, *messages):
        self.closed = False
        self.sent = []
        self._messages = asyncio.Queue()
        self.say(*messages)

    @property
    def waiting(self):
        """Messages that have not been read yet."""
        return self._messages.qsize()

    def say(self, *messages):
        for message in messages:
            self._messages.put_nowait(message)

    async def receive(self):
        message = await self._messages.get()
        if isinstance(message, Exception):
            raise message
        return message

    async def send(self, message):
        self.sent.append(message)

    async def close(self):
        self.closed = True


def watch_message(revision, *changes, **fields):
    """Return a message as the gateway encodes it; each change is a revision and a key."""
    events = [
        {"kv": {"key": key, "create_revision": at, "mod_revision": str(at), "version": "1"}}
        for at, key in changes
    ]
    return orjson.dumps({"result": {"header": {"revision": str(revision)}, "events": events, **fields}})


K, OTHER = "aw==", "eA=="
"""The keys `k` and `x` in base64, as the gateway writes them."""

CREATED = watch_message(1, created=True)
