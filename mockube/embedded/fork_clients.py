"""The clients of forks: they share one event loop in a thread, which starts with the first request to a fork."""

from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from threading import Lock
from typing import Any, TypeVar

from mockube.client.kubeconfig import Access
from mockube.command_client import open_client
from mockube.component_base.clock import Clock
from mockube.objects.requests import ObjectRequests

from .background_loop import BackgroundContext

T = TypeVar("T")


class ForkClient:
    """The requests to one fork."""

    def __init__(self, requests: ObjectRequests, connections: AsyncExitStack) -> None:
        self.requests = requests
        self._connections = connections

    async def close(self) -> None:
        await self._connections.aclose()


class ForkClients:
    def __init__(self) -> None:
        self._context = BackgroundContext(_until_closed, name="mockube forks")
        self._is_started = False
        self._start_lock = Lock()

    def open(self, admin: Access, controllers: Access, clock: Clock) -> ForkClient:
        """Return a client with the administrator's credentials; what it needs to know is read as the controllers, and not recorded as the user's."""
        return self.submit(_open(admin, controllers, clock)).result()

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        with self._start_lock:
            if not self._is_started:
                self._context.start()
                self._is_started = True
        self._context.opened.result()
        return self._context.submit(work)

    def close(self) -> None:
        self._context.close()


@asynccontextmanager
async def _until_closed() -> AsyncIterator[None]:
    yield


async def _open(admin: Access, controllers: Access, clock: Clock) -> ForkClient:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_client(admin, clock))
        reports = await stack.enter_async_context(open_client(controllers, clock))
        return ForkClient(ObjectRequests(client, admin, reports=reports, clock=clock), stack.pop_all())
