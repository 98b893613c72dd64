"""The clusters that `Cluster.fork` returns: the methods of `Cluster`, for a cluster in a process of its own."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self

from mockube.embedded.fork_messages import AdvanceClock, Fork
from mockube.embedded.forked_handle import ForkedHandle
from mockube.embedded.handle import AwaitedClients, BlockingClients, ClusterHandle
from mockube.embedded.running_fork import RunningFork
from mockube.objects.arguments import read_span
from mockube.objects.awaited import AwaitedObjectMethods
from mockube.objects.blocking import ObjectMethods


class AsyncForkedCluster(ForkedHandle, AwaitedClients, AwaitedObjectMethods):
    """A fork with asynchronous methods, which `async with cluster.fork()` returns."""

    async def advance(self, seconds: float) -> None:
        """Advance the clock of the fork by some seconds, as `AsyncCluster.advance`."""
        __tracebackhide__ = True
        await asyncio.to_thread(_advance, self, seconds)

    def fork(self) -> "AbstractAsyncContextManager[AsyncForkedCluster]":
        """Return a block with a fork of the fork, as `AsyncCluster.fork`."""
        return AwaitedFork(lambda: _fork(self._running), self)


class ForkedCluster(ForkedHandle, BlockingClients, ObjectMethods):
    """A fork of a cluster, as a context manager, which runs until it or the cluster from which it was forked is stopped.

    It has everything that the cluster had: objects, clock, injected faults, recorded calls, the files of containers. Its server
    has another address, and the same certificates and tokens.
    """

    @property
    def awaited(self) -> AsyncForkedCluster:
        """The same fork with asynchronous methods."""
        return AsyncForkedCluster(self._running, self._parent, self._clients)

    def stop(self) -> None:
        """Stop the fork, and the forks that were made of it. Their objects are lost."""
        self._clients.close()
        self._running.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def advance(self, seconds: float) -> None:
        """Advance the clock of the fork by some seconds, as `Cluster.advance`."""
        __tracebackhide__ = True
        _advance(self, seconds)

    def fork(self) -> "ForkedCluster":
        """Fork the fork, as `Cluster.fork`."""
        __tracebackhide__ = True
        return ForkedCluster(_fork(self._running), self)


class AwaitedFork:
    """A fork during an `async with` block."""

    def __init__(self, start: Callable[[], RunningFork], parent: ClusterHandle) -> None:
        self._start, self._parent = start, parent
        self._fork: ForkedCluster

    async def __aenter__(self) -> AsyncForkedCluster:
        __tracebackhide__ = True
        self._fork = ForkedCluster(await asyncio.to_thread(self._start), self._parent)
        return self._fork.awaited

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._fork.stop)


def _advance(cluster: ForkedHandle, seconds: float) -> None:
    __tracebackhide__ = True
    cluster._call(AdvanceClock(seconds=read_span(seconds)), None)  # noqa: SLF001 - of this module's classes


def _fork(running: RunningFork) -> RunningFork:
    """Let the process of a fork fork itself: the new process gets the other end of a pair of sockets from this one."""
    __tracebackhide__ = True
    return running.forks.start(
        lambda theirs: running.process.call(Fork(), int, [theirs.fileno()]), running.server, is_child=False
    )
