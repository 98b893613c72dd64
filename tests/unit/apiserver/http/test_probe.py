"""What is told of a process that is asked how it is."""

import socket

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from mockube.apiserver.http.probe import MAX_BODY, probe
from mockube.apiserver.registry.component_statuses import Health


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
            "/long": web.Response(text="x" * (2 * MAX_BODY)),
        }
        return answers[request.path]

    async with RawTestServer(handle) as server:
        yield server


@pytest.mark.parametrize("path", ["/healthz", "/moved"])
async def test_who_is_well_is_quoted(server, path):
    assert await probe(str(server.make_url(path))) == Health(is_good=True, message="ok")


async def test_not_all_of_a_long_answer_is_read(server):
    health = await probe(str(server.make_url("/long")))
    assert health.is_good
    assert 0 < len(health.message) <= MAX_BODY


async def test_of_who_is_ill_only_the_code_is_told(server):
    health = await probe(str(server.make_url("/ill")))
    assert health == Health(is_good=False, message="HTTP probe failed with statuscode: 500")


async def test_who_does_not_listen_is_ill():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"https://127.0.0.1:{port}/healthz"
    assert await probe(url) == Health(
        is_good=False, message=f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )


@pytest.mark.parametrize("path", ["/away", "/again"])
async def test_a_redirect_leads_nowhere_else_and_not_for_ever(server, path):
    """Nobody listens at port 1, so whoever went there would fail."""
    assert (await probe(str(server.make_url(path)))) == Health(is_good=True, message="302: Found")


async def test_a_redirect_that_is_no_url_is_no_answer(server):
    assert not (await probe(str(server.make_url("/odd")))).is_good
