"""Requests to a server in the same event loop, without a socket."""

import asyncio

import orjson
import pytest

from mockube.apiserver.request.response import text_response
from mockube.client.wire import OutcomeUnknown, Request, Unreachable
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.embedded.direct import DirectTransport
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.apiserver import running

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
ADMIN = {"Authorization": "Bearer admin"}


def request(method, target, body=b"", *, timeout=20.0):
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    return Request(method=method, target=target, headers=headers, body=body, timeout=timeout)


@pytest.fixture
async def server():
    async with running() as client:
        yield client.server.handler


@pytest.fixture
async def transport(server):
    made = DirectTransport(server.handle, RealClock())
    yield made
    await made.close()


async def test_in_process_response_equals_socket_response(transport):
    created = await transport.send(request("POST", CONFIG_MAPS, b'{"metadata": {"name": "a"}}'), ADMIN)
    assert created.status == 201
    response = await transport.send(request("GET", f"{CONFIG_MAPS}?limit=5"), ADMIN)
    assert [one["metadata"]["name"] for one in orjson.loads(response.body)["items"]] == ["a"]
    assert (await transport.send(request("GET", "/version"), ADMIN)).status == 200


async def test_in_process_request_without_credentials_is_unauthorized(transport):
    assert (await transport.send(request("GET", CONFIG_MAPS), {})).status == 401


async def test_in_process_error_is_returned_as_answer(transport):
    answer = await transport.send(request("GET", f"{CONFIG_MAPS}/none"), ADMIN)
    assert (answer.status, orjson.loads(answer.body)["reason"]) == (404, "NotFound")


async def test_in_process_watch_streams_until_reader_closes(server, transport):
    async with transport.stream(request("GET", f"{CONFIG_MAPS}?watch=true"), ADMIN) as stream:
        assert stream.status == 200
        await transport.send(request("POST", CONFIG_MAPS, b'{"metadata": {"name": "a"}}'), ADMIN)
        async for chunk in stream.chunks():
            assert orjson.loads(chunk)["object"]["metadata"]["name"] == "a"
            break
        assert len(server.watch_handler._streams) == 1
    await until(lambda: not server.watch_handler._streams)


async def test_in_process_watch_refusal_has_body(transport):
    watching = request("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=none")
    async with transport.stream(watching, ADMIN) as stream:
        assert stream.status == 400
        assert orjson.loads(await stream.read())["reason"] == "BadRequest"


async def abort_request(request):
    request.client.abort()
    return text_response("nobody reads this")


async def wait_forever(_):
    await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("handle", [abort_request, wait_forever])
async def test_in_process_request_timeout_has_unknown_outcome_for_writes(handle):
    clock = SteppedClock()
    transport = DirectTransport(handle, clock)

    async def opened():
        async with transport.stream(request("GET", CONFIG_MAPS), ADMIN):
            pass

    for waiting, error in (
        (transport.send(request("POST", CONFIG_MAPS, b"{}"), ADMIN), OutcomeUnknown),
        (transport.send(request("GET", CONFIG_MAPS), ADMIN), Unreachable),
        (opened(), Unreachable),
    ):
        task = asyncio.create_task(waiting)
        await yield_to_loop(5)
        clock.advance(20.0)
        with pytest.raises(error):
            await task
    await transport.close()


async def test_in_process_retry_after_is_returned():
    async def too_many_requests(_):
        return text_response("later", 429, retry_after=7)

    transport = DirectTransport(too_many_requests, RealClock())
    answer = await transport.send(request("GET", CONFIG_MAPS), ADMIN)
    assert (answer.status, answer.retry_after, answer.body) == (429, 7.0, b"later")


async def fail(_):
    raise RuntimeError("a fault in the program")


async def fail_in_stream(request):
    stream = request.client.stream(text_response(""))
    await stream.begin()
    await stream.write([b"first"])
    raise RuntimeError("a fault in the program")


def is_fault_logged(caplog):
    (entry,) = map(caplog.handler.format, caplog.records)
    return "Traceback" in entry and "RuntimeError: a fault in the program" in entry


@pytest.mark.parametrize(("method", "error"), [("GET", Unreachable), ("POST", OutcomeUnknown)])
async def test_failed_in_process_request_is_logged_and_cut(caplog, method, error):
    transport = DirectTransport(fail, RealClock())
    with pytest.raises(error, match="the connection was cut"):
        await transport.send(request(method, CONFIG_MAPS), ADMIN)
    assert is_fault_logged(caplog)


async def test_failed_in_process_stream_is_logged_and_ends(caplog):
    transport = DirectTransport(fail_in_stream, RealClock())
    async with transport.stream(request("GET", CONFIG_MAPS), ADMIN) as stream:
        assert await stream.read() == b"first"
    assert is_fault_logged(caplog)


async def test_failed_in_process_stream_without_beginning_is_refused(caplog):
    transport = DirectTransport(fail, RealClock())
    with pytest.raises(Unreachable, match="the connection was cut"):
        async with transport.stream(request("GET", CONFIG_MAPS), ADMIN):
            pass
    assert is_fault_logged(caplog)


async def test_in_process_request_that_fails_after_its_caller_is_logged(caplog):
    going, clock = asyncio.Event(), SteppedClock()

    async def fail_later(_):
        await going.wait()
        raise RuntimeError("a fault in the program")

    transport = DirectTransport(fail_later, clock)
    waiting = asyncio.create_task(transport.send(request("GET", CONFIG_MAPS), ADMIN))
    await yield_to_loop(5)
    clock.advance(20.0)
    with pytest.raises(Unreachable, match="no response"):
        await waiting
    going.set()
    await until(lambda: caplog.records)
    assert is_fault_logged(caplog)
