"""A fenced transport sends reads and no writes."""

import pytest

from mockube.client.transport import FencedTransport
from mockube.client.wire import Request, Response, Unreachable


class RecordingTransport:
    host = "server"

    def __init__(self):
        self.sent = []

    async def send(self, request, _headers):
        self.sent.append(request.method)
        return Response(200, None, b"{}")


def request(method):
    return Request(method=method, target="/", headers={}, timeout=1.0)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_fenced_transport_sends_no_writes(method):
    line, allowed = RecordingTransport(), [True, False]
    fenced = FencedTransport(line, lambda: allowed.pop(0))
    await fenced.send(request(method), {})
    with pytest.raises(Unreachable, match="the lease is lost"):
        await fenced.send(request(method), {})
    assert line.sent == [method]


async def test_fenced_transport_sends_reads():
    line = RecordingTransport()
    await FencedTransport(line, lambda: False).send(request("GET"), {})
    assert line.sent == ["GET"]
