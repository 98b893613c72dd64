"""HTTP health probes of a process: results, messages and redirects."""

import socket

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from mockube.apiserver.http import outgoing_limits
from mockube.apiserver.http.probe import probe
from mockube.apiserver.registry.component_statuses import ComponentHealth


@pytest.fixture
async def server():
    moved = {
        "/moved": "/healthz",
        "/again": "/again",
        "/away": "http://localhost:1/healthz",
        "/odd": "http://[",
    }

    async def handle(request):
        if request.path in moved:
            raise web.HTTPFound(moved[request.path])
        answers = {
            "/healthz": web.Response(text="ok"),
            "/ill": web.Response(status=500, text="secret"),
            "/long": web.Response(text="x" * (2 * outgoing_limits.MAX_PROBE_RESPONSE)),
        }
        return answers[request.path]

    async with RawTestServer(handle) as server:
        yield server


@pytest.mark.parametrize("path", ["/healthz", "/moved"])
async def test_healthy_probe_has_response_text(server, path):
    assert await probe(str(server.make_url(path))) == ComponentHealth(is_good=True, message="ok")


async def test_long_probe_response_is_truncated(server):
    health = await probe(str(server.make_url("/long")))
    assert health.is_good
    assert 0 < len(health.message) <= outgoing_limits.MAX_PROBE_RESPONSE


async def test_failed_probe_has_status_code_only(server):
    health = await probe(str(server.make_url("/ill")))
    assert health == ComponentHealth(is_good=False, message="HTTP probe failed with statuscode: 500")


async def test_probe_of_closed_port_fails_with_gos_message():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"https://127.0.0.1:{port}/healthz"
    assert await probe(url) == ComponentHealth(
        is_good=False, message=f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )


@pytest.mark.parametrize("path", ["/away", "/again"])
async def test_probe_redirects_stay_on_host_and_are_limited(server, path):
    """No server listens on port 1, so a request that followed the redirect would fail."""
    assert (await probe(str(server.make_url(path)))) == ComponentHealth(is_good=True, message="302: Found")


async def test_probe_redirect_to_invalid_url_fails(server):
    assert not (await probe(str(server.make_url("/odd")))).is_good
