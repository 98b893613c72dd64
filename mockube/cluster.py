"""`mockube.Cluster`: a control plane in this process for notebooks, scripts and tests, which ends with its block.

It runs in an event loop in a thread of its own, whatever thread uses it: `with` returns a cluster whose methods block,
and `async with` one whose methods are awaited. Methods that neither block nor are awaited are in `Handle`.
"""

import asyncio
import weakref
from argparse import ArgumentTypeError
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, TypeVar

from mockube import clients
from mockube.apimachinery.schema import minors
from mockube.cluster_client import Condition
from mockube.controller_manager.client.client import Parsed
from mockube.controller_manager.kubelet.addresses import MAX_NODES
from mockube.embedded.background_loop import HostedRun
from mockube.embedded.control_plane import ClusterOptions, Plane, control_plane
from mockube.embedded.handle import Fault, Handle, NotStarted
from mockube.processes.defaults import KRUISE, NODES

__all__ = ["AsyncCluster", "Cluster", "Fault", "NotStarted"]

TIMEOUT: Final = 30.0
"""Seconds that are waited for a condition."""

T = TypeVar("T")
Objects: TypeAlias = list[Parsed]


class AsyncCluster(Handle):
    """What `async with Cluster() as cluster` gives."""

    async def apply(self, manifests: str | Path) -> Objects:
        """Apply YAML of any number of documents, or a file of it; answers with the objects as they are now."""
        return await self._do(self._plane.reach.apply(manifests))

    async def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - it is the limit of a wait that the user requests
        *,
        namespace: str = "default",
    ) -> Parsed:
        """Until the object meets the condition: the type of one that shall be True, or a question about the object."""
        reach = self._plane.reach
        return await self._do(reach.wait(kind, name, condition, seconds=timeout, namespace=namespace))

    async def wait_gone(
        self,
        kind: str,
        name: str,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - as above
        *,
        namespace: str = "default",
    ) -> None:
        """Until there is no such object."""
        await self._do(self._plane.reach.wait_gone(kind, name, seconds=timeout, namespace=namespace))

    async def get(self, kind: str, name: str, *, namespace: str = "default") -> Parsed:
        return await self._do(self._plane.reach.get(kind, name, namespace=namespace))

    async def list(self, kind: str, *, namespace: str = "default", labels: str = "") -> Objects:
        """Those that a selector of labels means; "" as the namespace is all of them."""
        return await self._do(self._plane.reach.list(kind, namespace=namespace, labels=labels))

    async def delete(self, kind: str, name: str, *, namespace: str = "default") -> None:
        await self._do(self._plane.reach.delete(kind, name, namespace=namespace))

    async def advance(self, seconds: float) -> None:
        """Let so many seconds pass at once for the server and the controllers, with all that happens in them."""
        await self._do(self._plane.advance(seconds))

    async def kr8s(self) -> Any:
        """An API object of `kr8s.asyncio`."""
        return await clients.kr8s_async(self._endpoint)

    def lightkube(self) -> Any:
        """An `AsyncClient` of lightkube. It is yours to close."""
        return clients.lightkube(self._endpoint, client="AsyncClient")

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._hosted.submit(work))


class Cluster(Handle):
    """A context manager. `packs` are kinds to serve besides Kubernetes' own, `version` is the minor release to be.

    `flags` are more flags of the API server, and `manager_flags` of the controller manager. `webhook_services` maps
    Services of webhooks and APIServices to addresses, as `{"NAMESPACE/NAME": "HOST:PORT"}`, where these are not
    processes of this cluster. `images` maps images to local commands, as a map or as the path of a file of one: containers of
    these run as processes of this machine.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the cluster
        self,
        *,
        nodes: int = NODES,
        packs: str = KRUISE,
        version: str = minors.NEWEST,
        flags: Sequence[str] = (),
        manager_flags: Sequence[str] = (),
        webhook_services: Mapping[str, str] | None = None,
        images: Mapping[str, Any] | Path | None = None,
    ) -> None:
        if not 0 <= nodes <= MAX_NODES:
            raise ValueError(f"nodes must be from 0 to {MAX_NODES}, not {nodes}")
        options = ClusterOptions(
            nodes=nodes,
            packs=packs,
            minor=_minor(version),
            flags=(*flags, *_service_flags(webhook_services or {})),
            manager_flags=tuple(manager_flags),
            images=images,
        )
        super().__init__(HostedRun[Plane](partial(control_plane, options), name="mockube"))

    @property
    def awaited(self) -> AsyncCluster:
        """The same cluster, for an event loop."""
        return AsyncCluster(self._hosted, self._clients)

    # --- from its begin to its end

    def start(self) -> Self:
        """Start as at the begin of a block; for notebooks. Calling `stop` is optional: the cluster ends with the process."""
        self._start()
        try:
            self._hosted.opened.result()
        except Exception as error:
            raise NotStarted(_reason(error)) from error
        except KeyboardInterrupt:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self._clients.close()
        self._hosted.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncCluster:
        self._start()
        try:
            await asyncio.wrap_future(self._hosted.opened)
        except Exception as error:
            raise NotStarted(_reason(error)) from error
        except asyncio.CancelledError:
            self.stop()
            raise
        return self.awaited

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hosted.stop()
        await asyncio.wait([asyncio.wrap_future(self._hosted.ended)])
        self.stop()

    def _start(self) -> None:
        try:
            self._hosted.start()
        except RuntimeError as error:
            raise NotStarted("a Cluster can be started once: create another one") from error
        weakref.finalize(self, self._hosted.close)

    # --- requests

    def apply(self, manifests: str | Path) -> Objects:
        """Apply YAML of any number of documents, or a file of it; answers with the objects as they are now."""
        return self._do(self._plane.reach.apply(manifests))

    def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        timeout: float = TIMEOUT,
        *,
        namespace: str = "default",
    ) -> Parsed:
        """Until the object meets the condition: the type of one that shall be True, or a question about the object."""
        reach = self._plane.reach
        return self._do(reach.wait(kind, name, condition, seconds=timeout, namespace=namespace))

    def wait_gone(
        self, kind: str, name: str, timeout: float = TIMEOUT, *, namespace: str = "default"
    ) -> None:
        """Until there is no such object."""
        self._do(self._plane.reach.wait_gone(kind, name, seconds=timeout, namespace=namespace))

    def get(self, kind: str, name: str, *, namespace: str = "default") -> Parsed:
        return self._do(self._plane.reach.get(kind, name, namespace=namespace))

    def list(self, kind: str, *, namespace: str = "default", labels: str = "") -> Objects:
        """Those that a selector of labels means; "" as the namespace is all of them."""
        return self._do(self._plane.reach.list(kind, namespace=namespace, labels=labels))

    def delete(self, kind: str, name: str, *, namespace: str = "default") -> None:
        self._do(self._plane.reach.delete(kind, name, namespace=namespace))

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass at once for the server and the controllers, with all that happens in them."""
        self._do(self._plane.advance(seconds))

    # --- clients

    def lightkube(self) -> Any:
        """A `Client` of lightkube."""
        return self._closing(clients.lightkube(self._endpoint))

    def kr8s(self) -> Any:
        """An API object of kr8s."""
        return clients.kr8s(self._endpoint)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._hosted.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise


def _reason(error: BaseException) -> str:
    """What it was that failed first, in however many blocks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _minor(version: str) -> str:
    try:
        return minors.read_minor(version)
    except ArgumentTypeError as error:
        raise ValueError(f"version: {error}") from error


def _service_flags(services: Mapping[str, str]) -> Iterator[str]:
    return (f"--webhook-service={name}={address}" for name, address in services.items())
