"""Waits whose watch gets no response in time, as from a busy server."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from mockube.apimachinery.status import NotFound, ServiceUnavailable
from mockube.client.discovery import DiscoveredResource
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.verbs import ObjectList
from mockube.client.wire import NoResponse
from mockube.component_base.clock import SteppedClock
from mockube.objects.client import ObjectClient
from mockube.objects.conditions import read_condition
from mockube.objects.errors import WaitFailed
from mockube.objects.targets import ObjectName

SECONDS = 0.3
SITE = ObjectName(kind="configmap", name="site", namespace="default")


class LateServer:
    """A server that answers no watch, as a client of it."""

    def __init__(self, clock, items):
        self._clock, self._items = clock, items

    @asynccontextmanager
    async def watch(self, _resource, _query, *, timeout_seconds):
        began = self._clock.monotonic()
        self._clock.advance(SECONDS)  # what is due runs at once, as after an event loop was busy
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            # aiohttp takes a cancellation for its own if its time is over, too, as its contexts of a timer are nested.
            if self._clock.monotonic() - began < timeout_seconds:
                raise
            raise NoResponse("GET /api/v1/configmaps?watch=true: TimeoutError") from None
        yield

    async def list(self, _resource, **_):
        if not self._items:
            raise ServiceUnavailable("busy")
        return ObjectList(items=self._items, resource_version="7", continue_token="")

    async def get(self, resource, key):
        if not self._items:
            raise NotFound(resource.group_resource, key.name)
        return self._items[0]


class Names:
    async def find(self, _kind):
        return DiscoveredResource(resource=CONFIG_MAPS, verbs=frozenset(), subresources=frozenset())

    async def all(self):
        return ()


@pytest.fixture
def object_client():
    def create(items):
        clock = SteppedClock()
        return ObjectClient(LateServer(clock, items), clock=clock, names=Names())

    return create


async def test_wait_without_an_answer_to_its_watch_says_what_is_missing(object_client):
    with pytest.raises(
        WaitFailed, match=r"ConfigMap site in namespace default was not created within 0\.3 s"
    ):
        await object_client([]).wait([SITE], read_condition("jsonpath={.data.color}=red"), SECONDS)


async def test_wait_for_a_deletion_without_an_answer_to_its_watch_says_what_remains(object_client):
    items = [{"metadata": {"name": "site", "namespace": "default"}}]
    with pytest.raises(WaitFailed, match=r"ConfigMap site in namespace default still exists after 0\.3 s"):
        await object_client(items).wait_gone([SITE], SECONDS)
