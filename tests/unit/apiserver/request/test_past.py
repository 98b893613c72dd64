"""The servers of moments: few are kept and built at once, and none goes for which a request waits."""

import asyncio

import pytest

from mockube.apimachinery.status import Forbidden
from mockube.apiserver.registry.moments import Moment
from mockube.apiserver.request.past import MAX_BUILT_AT_ONCE, MAX_MOMENTS, Past
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import ANONYMOUS
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.handler_requests import request_of

PATH = "/api/v1/namespaces"


class Moments:
    async def find(self, text):
        return Moment(revision=int(text), time=None)


class Server:
    object_count = 1

    def __init__(self):
        self.has_ended = False

    async def serve(self, _request):
        return Response(200)

    def end_streams(self):
        self.has_ended = True


class Builder:
    """Makes servers, each once `release` is called."""

    def __init__(self):
        self.building, self.servers, self.cancelled = {}, {}, []

    async def __call__(self, moment):
        revision = moment.revision
        self.building[revision] = asyncio.Event()
        try:
            await self.building[revision].wait()
        except asyncio.CancelledError:
            self.cancelled.append(revision)
            raise
        finally:
            del self.building[revision]
        self.servers[revision] = Server()
        return self.servers[revision]

    def release(self):
        for event in self.building.values():
            event.set()


@pytest.fixture
def builder():
    return Builder()


@pytest.fixture
async def past(builder):
    past = Past(Moments(), builder, find=lambda *_: None)
    yield past
    await past.close()


def ask(past, revision):
    request = request_of("GET", PATH)
    request.moment = str(revision)
    return asyncio.create_task(past.serve(request, None))


async def test_requests_for_more_moments_than_are_kept_are_all_answered(past, builder):
    asking = [ask(past, revision) for revision in range(1, MAX_MOMENTS + 4)]
    while not all(task.done() for task in asking):
        await until(lambda: builder.building)
        await yield_to_loop(3)
        assert len(builder.building) <= MAX_BUILT_AT_ONCE
        builder.release()
        await yield_to_loop(5)
    assert [task.result().status for task in asking] == [200] * len(asking)
    assert builder.cancelled == []
    assert sum(not server.has_ended for server in builder.servers.values()) == MAX_MOMENTS


@pytest.mark.parametrize("path", ["", "/version", "/healthz"])
async def test_moment_is_not_looked_up_for_anonymous_requests(past, path):
    request = request_of("GET", f"/mockube/at/secret-release{path}")
    request.moment, request.path, request.user = "secret-release", path, ANONYMOUS
    request.info = parse("GET", path or "/version", watch=False)
    with pytest.raises(Forbidden, match='"system:anonymous" cannot get path "/mockube/at/secret-release'):
        await past.serve(request, None)


async def test_moment_without_waiting_requests_is_dropped(past, builder):
    abandoned = [ask(past, revision) for revision in range(1, MAX_MOMENTS + 4)]
    await until(lambda: len(builder.building) == MAX_BUILT_AT_ONCE)
    for task in abandoned:
        task.cancel()
    await asyncio.gather(*abandoned, return_exceptions=True)
    await until(lambda: builder.cancelled)
    assert len(past._servers) <= MAX_MOMENTS
