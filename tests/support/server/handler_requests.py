"""Requests for a handler, without a transport."""

from multidict import CIMultiDict

from mockube.apimachinery.status import request_entity_too_large
from mockube.apiserver.request.request import Request


class FakeClient:
    """Records what a handler does with it. `slow` is awaited before each write."""

    address = "192.0.2.7"
    certificates = None

    def __init__(self, uri="/", body=b"", *, slow=None):
        self.uri = uri
        self.body = body
        self.has_body = bool(body)
        self.slow = slow
        self.is_cut = self.is_aborted = self.is_authenticated = self.has_ended = False
        self.written = []
        self.head = ""
        self.lost = None

    def set_authenticated(self):
        self.is_authenticated = True

    def set_unauthenticated(self):
        pass

    def on_lost(self, callback):
        self.lost = callback

    def abort(self):
        self.is_aborted = True

    async def read(self, limit):
        if len(self.body) > limit:
            raise request_entity_too_large(f"limit is {limit}")
        return self.body

    async def begin(self):
        pass

    async def write(self, content):
        """The body of a response, or the chunks of a stream."""
        if self.slow is not None:
            await self.slow
        self.written.append(content)

    async def end(self):
        self.has_ended = True

    def release(self):
        pass

    def stream(self, _response):
        return self

    def messages(self, protocols, _frame, _on_closed):
        self.protocols = protocols
        return self


def request_of(method, uri, body=b"", *, client=None, version=(1, 1), **headers):
    """Names of headers are written with underscores."""
    header_map = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
    path, _, query = uri.partition("?")
    return Request(method, path, query, header_map, client or FakeClient(uri, body), version=version)
