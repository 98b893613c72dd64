"""Host headers over a socket: names of the server, other names, repeated, malformed and absent."""

import pytest
from yarl import URL

from tests.support.server import apiserver, raw_http

LOCAL = b"Host: localhost"


@pytest.fixture
async def client():
    async with apiserver.running("--allowed-hosts=api.example.com") as client:
        yield client


async def send_request(client, *lines, version=b"1.1", path=b"/version"):
    url = URL(client.url)
    head = b"\r\n".join([b"GET %s HTTP/%s" % (path, version), *lines, b"Connection: close", b"", b""])
    return await raw_http.exchange((url.host, url.port), [head])


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        pytest.param([LOCAL], 200, id="local"),
        pytest.param([b"host: API.example.com:6443"], 200, id="name of the server"),
        pytest.param([b"Host: [::1]:6443"], 200, id="an address"),
        pytest.param([b"Host:"], 200, id="empty"),
        pytest.param([b"Host: evil.example"], 421, id="other name"),
        pytest.param([b"Host: evil.example", LOCAL], 400, id="other name, then local name"),
        pytest.param([LOCAL, b"Host: evil.example"], 400, id="local name, then other name"),
        pytest.param([b"Host: evil.example", b"X-Forwarded-Host: localhost"], 421, id="X-Forwarded-Host"),
        pytest.param([b"Host: \xff"], 400, id="invalid bytes"),
        pytest.param([b"Host: localhost, evil.example"], 400, id="a list"),
        pytest.param([], 400, id="no Host"),
    ],
)
async def test_allowed_hosts_are_served(client, lines, status):
    assert (await send_request(client, *lines)).status == status


async def test_http_1_0_request_needs_no_host(client):
    assert (await send_request(client, version=b"1.0", path=b"/readyz")).status == 200


async def test_host_refusal_has_advice(client):
    answer = await client.get("/api", Host="evil.example")
    assert answer.status == 421
    assert answer.body["message"] == (
        'the host "evil.example" is not a name of this server. If it is, name it with --allowed-hosts.'
    )
    assert answer.body["code"] == 421
