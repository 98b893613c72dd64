"""How methods send their requests: in the event loop of a background thread, blocking or awaited."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TypeAlias, TypeVar

from .errors import await_without_frames, call_without_frames
from .port_forward import PortForward
from .requests import ObjectRequests, Work

T = TypeVar("T")
Request: TypeAlias = Callable[[ObjectRequests], Work[T]]
"""Reads the arguments of a method, and returns the coroutine that sends the request."""


class RequestSender:
    @property
    def _requests(self) -> ObjectRequests:
        raise NotImplementedError

    def _submit(self, work: Work[T]) -> "Future[T]":
        """Run a coroutine in the event loop of the client."""
        raise NotImplementedError


class BlockingSender(RequestSender):
    def _do(self, request: Request[T]) -> T:
        __tracebackhide__ = True
        return call_without_frames(lambda: self._wait_for(request(self._requests)))

    def _wait_for(self, work: Work[T]) -> T:
        future = self._submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _open_port(self, request: Request[PortForward]) -> AbstractContextManager[PortForward]:
        return _BlockingPort(self, request)


class AwaitedSender(RequestSender):
    async def _do(self, request: Request[T]) -> T:
        __tracebackhide__ = True
        return await await_without_frames(self._send(request))

    async def _send(self, request: Request[T]) -> T:
        work = await asyncio.to_thread(request, self._requests)
        return await asyncio.wrap_future(self._submit(work))

    def _open_port(self, request: Request[PortForward]) -> AbstractAsyncContextManager[PortForward]:
        return _AwaitedPort(self, request)


class _BlockingPort:
    """A port-forward during a `with` block."""

    def __init__(self, sender: BlockingSender, request: Request[PortForward]) -> None:
        self._sender = sender
        self._request = request
        self._forward: PortForward

    def __enter__(self) -> PortForward:
        __tracebackhide__ = True
        self._forward = self._sender._do(self._request)  # noqa: SLF001 - the method of the same module
        return self._forward

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sender._do(lambda _: self._forward.close())  # noqa: SLF001 - as above
        self._forward.add_notes(error)


class _AwaitedPort:
    """A port-forward during an `async with` block."""

    def __init__(self, sender: AwaitedSender, request: Request[PortForward]) -> None:
        self._sender = sender
        self._request = request
        self._forward: PortForward

    async def __aenter__(self) -> PortForward:
        __tracebackhide__ = True
        self._forward = await self._sender._do(self._request)  # noqa: SLF001 - the method of the same module
        return self._forward

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._sender._do(lambda _: self._forward.close())  # noqa: SLF001 - as above
        self._forward.add_notes(error)
