"""`mockube.connect`: the methods of `Cluster` about objects, for a cluster that runs already."""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from mockube import launch
from mockube.client.kubeconfig import Access, KubeconfigError, read
from mockube.client.wire import NoResponse
from mockube.clusters.named_cluster import running_cluster
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.default_cluster.block import DefaultCluster
from mockube.default_cluster.target import target_of
from mockube.embedded.background_loop import BackgroundContext
from mockube.failure import Failure, UsageError
from mockube.objects.awaited import AwaitedObjectMethods
from mockube.objects.blocking import ObjectMethods
from mockube.objects.errors import EXPLAINED, InvalidType, without_frames
from mockube.objects.requests import ObjectRequests, Work
from mockube.objects.senders import RequestSender

T = TypeVar("T")


def connect(
    name: str = "", *, kubeconfig: "str | os.PathLike[str] | None" = None, context: str = ""
) -> "Connection":
    """Connect to a cluster that runs already: one of `mockube up`, by its name, or any other, by its kubeconfig.

    Without arguments it is the cluster of the kubeconfig that $KUBECONFIG names, as inside of `mockube run`; if the
    variable is not set, the cluster that `mockube up` started without a name. `context` chooses a context of the
    kubeconfig. The connection is a context manager; without a block, it is closed with the process or by `close`.
    """
    __tracebackhide__ = True
    try:
        return Connection(_kubeconfig(name, kubeconfig, os.environ), context)
    except EXPLAINED as error:
        raise without_frames(error) from None


class _Connection(RequestSender):
    """A client in a background thread."""

    def __init__(
        self, background: BackgroundContext[ObjectRequests], path: Path, access: Access, context: str
    ) -> None:
        self._background = background
        self._path = path
        self._access = access
        self._context = context

    def __repr__(self) -> str:
        return f"<connection to {self.url}>"

    @property
    def kubeconfig(self) -> Path:
        """The path of the kubeconfig."""
        return self._path

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._access.server

    def as_default(self) -> DefaultCluster:
        """Return a block in which this cluster is the default of the process, as that of `Cluster`."""
        # The current context of the kubeconfig may be another one.
        path = None if self._context else self._path
        return DefaultCluster(lambda: target_of(self._access, path))

    @property
    def _requests(self) -> ObjectRequests:
        __tracebackhide__ = True
        if self._background.ended.done():
            raise self._closed()
        return self._background.opened.result()

    def _submit(self, work: Work[T]) -> "Future[T]":
        return self._background.submit(work)

    def _closed(self) -> Failure:
        return Failure("the connection was closed")


class AsyncConnection(_Connection, AwaitedObjectMethods):
    """A connection with asynchronous methods, which `async with connect()` returns."""


class Connection(_Connection, ObjectMethods):
    """A connection to a cluster that runs already: the methods of `Cluster` about objects, `as_default`, `url` and `kubeconfig`."""

    def __init__(self, path: Path, context: str = "") -> None:
        access = _read_access(path, context)
        background = BackgroundContext(partial(_requests_of, access), name="mockube client")
        super().__init__(background, path, access, context)
        background.start()
        weakref.finalize(self, background.close)
        background.opened.result()

    @property
    def awaited(self) -> AsyncConnection:
        """The same connection with asynchronous methods."""
        return AsyncConnection(self._background, self._path, self._access, self._context)

    def close(self) -> None:
        """Close the connection."""
        self._background.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> AsyncConnection:
        return self.awaited

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._background.stop()
        await asyncio.wait([asyncio.wrap_future(self._background.ended)])
        self.close()


@asynccontextmanager
async def _requests_of(access: Access) -> AsyncIterator[ObjectRequests]:
    """Yield the requests to a server; raise Failure if it does not respond."""
    async with open_client(access, RealClock()) as client:
        try:
            await client.raw("GET", "/version")
        except NoResponse as error:
            raise Failure(f"the server {access.server} does not respond: {error}") from error
        yield ObjectRequests(client, access)


def _kubeconfig(
    name: str, kubeconfig: "str | os.PathLike[str] | None", environment: Mapping[str, str]
) -> Path:
    if not isinstance(name, str):
        raise InvalidType(f"the name of a cluster is a str, not {type(name).__name__}")
    if "/" in name:
        raise UsageError(f'"{name}" is not the name of a cluster: pass a path as connect(kubeconfig=...)')
    if name and kubeconfig is not None:
        raise UsageError("connect takes the name of a cluster or a kubeconfig, not both")
    if kubeconfig is None and not name:
        kubeconfig = environment.get("KUBECONFIG") or None
    if kubeconfig is None:
        folder, _ = running_cluster(name or launch.NAME, environment)
        return folder.kubeconfig
    if not str(kubeconfig):
        raise UsageError("the path of the kubeconfig is empty: is KUBECONFIG set?")
    if os.pathsep in str(kubeconfig):
        raise UsageError(f"{kubeconfig} are several kubeconfigs: pass the path of one")
    return Path(kubeconfig).expanduser()


def _read_access(path: Path, context: str) -> Access:
    try:
        return read(path, context=context)
    except KubeconfigError as error:
        raise Failure(str(error)) from error
