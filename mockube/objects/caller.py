"""Calls of a user's functions during a request, in the thread or the loop in which the user waits for the request.

The loop of a client may also run the server: a function that waits there for a response, or just takes long, would stop both.
"""

import asyncio
import queue
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")
Call: TypeAlias = Callable[[], None]
Submit: TypeAlias = Callable[[Coroutine[Any, Any, T]], "Future[T]"]
"""Runs a coroutine in the loop of the client."""

_SEND_CALL: Final = ContextVar[Callable[[Call], None]]("send_call")
"""Sends a call to the caller of the request that runs in this context."""


class CallCount:
    """The number of calls that have been sent to callers, and have not returned yet."""

    def __init__(self) -> None:
        self.count = 0


CALL_COUNT: Final = ContextVar[CallCount]("call_count")
"""Counts the calls of this context, if anybody needs to know."""


async def call_in_caller(function: Callable[[], T]) -> T:
    """Call a function where the caller of this request waits. Its error is raised there, and ends the request."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def call() -> None:
        __tracebackhide__ = True
        value = function()
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(_set_result, result, value)

    count = CALL_COUNT.get(None) or CallCount()
    count.count += 1
    try:
        _SEND_CALL.get()(call)
        return await result
    finally:
        count.count -= 1


def run_blocking(submit: Submit[T], work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in another thread, and the calls that it sends in this one; return its result."""
    __tracebackhide__ = True
    calls: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
    future = _submit(submit, work, calls.put)
    future.add_done_callback(lambda _: calls.put(None))
    try:
        while (call := calls.get()) is not None:
            call()
    except BaseException:
        future.cancel()
        raise
    return future.result()


async def run_awaited(submit: Submit[T], work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the loop of another thread, and the calls that it sends in this loop; return its result."""
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    calls: asyncio.Queue[Call | None] = asyncio.Queue()

    def send(call: Call | None) -> None:
        with suppress(RuntimeError):  # the loop of the caller was closed
            loop.call_soon_threadsafe(calls.put_nowait, call)

    future = _submit(submit, work, send)
    future.add_done_callback(lambda _: send(None))
    try:
        while (call := await calls.get()) is not None:
            call()
    except BaseException:
        future.cancel()
        raise
    return future.result()


def frames_of_function(error: BaseException) -> TracebackType | None:
    """Return the frames of the user's function that raised an error; None if no function did."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is call_function.__code__:
            return trace.tb_next
        trace = trace.tb_next
    return None


def call_function(function: Callable[[Any], T], argument: Any) -> T:
    """Call a user's function. Errors are reported from its frames on."""
    __tracebackhide__ = True
    return function(argument)


def _submit(submit: Submit[T], work: Coroutine[Any, Any, T], send: Callable[[Call], None]) -> "Future[T]":
    """Run a coroutine in the loop of the client, in a copy of a context that has the caller."""
    token = _SEND_CALL.set(send)
    try:
        return submit(work)
    finally:
        _SEND_CALL.reset(token)


def _set_result(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)
