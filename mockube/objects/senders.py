"""How methods send their requests: in the event loop of a background thread, blocking or awaited."""

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TypeAlias, TypeVar

from mockube.failure import Failure

from . import caller
from .errors import without_frames
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
        """Run a coroutine in the event loop of the client. The future is cancelled if the loop ends before."""
        raise NotImplementedError

    def _closed(self) -> Failure:
        """Return the error of a request whose client was closed before its response."""
        raise NotImplementedError


class BlockingSender(RequestSender):
    def _do(self, request: Request[T]) -> T:
        __tracebackhide__ = True
        try:
            return caller.run_blocking(self._submit, request(self._requests))
        except CancelledError:
            raise self._closed() from None
        except BaseException as error:  # noqa: BLE001 - it is raised
            raise without_frames(error)  # noqa: B904 - it is the same error

    def _open_port(self, request: Request[PortForward]) -> AbstractContextManager[PortForward]:
        return _BlockingPort(self, request)


class AwaitedSender(RequestSender):
    async def _do(self, request: Request[T]) -> T:
        __tracebackhide__ = True
        try:
            work = await asyncio.to_thread(request, self._requests)
            return await caller.run_awaited(self._submit, work)
        except CancelledError:
            raise self._closed() from None
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - it is raised
            raise without_frames(error)  # noqa: B904 - it is the same error

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
