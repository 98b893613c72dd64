"""`mockube.Cluster`: a control plane in this process for notebooks, scripts and tests, which stops at the end of its block.

It runs in an event loop in a background thread: `with` returns a cluster whose methods block, and `async with` one
whose methods are awaited. Methods that neither block nor are awaited are in `Handle`.
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
from mockube.component_base.release_options import read_minor
from mockube.controller_manager.client.client import Parsed
from mockube.controller_manager.config.networks import MAX_SIMULATED_NODES
from mockube.embedded.background_loop import BackgroundContext
from mockube.embedded.control_plane import ClusterOptions, EmbeddedControlPlane, control_plane
from mockube.embedded.handle import Fault, Handle, NotStarted
from mockube.launch import NODES, PACKS

__all__ = ["AsyncCluster", "Cluster", "Fault", "NotStarted"]

TIMEOUT: Final = 30.0
"""The default timeout of `wait` and `wait_gone`, in seconds."""

T = TypeVar("T")
Objects: TypeAlias = list[Parsed]


class AsyncCluster(Handle):
    """A running cluster with asynchronous methods, which `async with Cluster()` returns."""

    async def apply(self, manifests: str | Path) -> Objects:
        """Apply the objects of a YAML text or file with server-side apply, and return the resulting objects."""
        return await self._do(self._plane.client.apply(manifests))

    async def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - it is the limit of a wait that the user requests
        *,
        namespace: str = "default",
    ) -> Parsed:
        """Wait until an object meets a condition, and return it; raise TimeoutError if it does not.

        The condition is the type of a status condition that must be True, or a predicate of the object.
        """
        client = self._plane.client
        return await self._do(client.wait(kind, name, condition, seconds=timeout, namespace=namespace))

    async def wait_gone(
        self,
        kind: str,
        name: str,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - as above
        *,
        namespace: str = "default",
    ) -> None:
        """Wait until the object does not exist; raise TimeoutError if it still does."""
        await self._do(self._plane.client.wait_gone(kind, name, seconds=timeout, namespace=namespace))

    async def get(self, kind: str, name: str, *, namespace: str = "default") -> Parsed:
        return await self._do(self._plane.client.get(kind, name, namespace=namespace))

    async def list(self, kind: str, *, namespace: str = "default", labels: str = "") -> Objects:
        """Return the objects that match a label selector; "" as the namespace means all namespaces."""
        return await self._do(self._plane.client.list(kind, namespace=namespace, labels=labels))

    async def delete(self, kind: str, name: str, *, namespace: str = "default") -> None:
        await self._do(self._plane.client.delete(kind, name, namespace=namespace))

    async def advance(self, seconds: float) -> None:
        """Advance the clock of server and controllers by some seconds, and run everything that is due by then."""
        await self._do(self._plane.advance(seconds))

    async def kr8s(self) -> Any:
        """Return an API object of `kr8s.asyncio`."""
        return await clients.kr8s_async(self._endpoint)

    def lightkube(self) -> Any:
        """Return an `AsyncClient` of lightkube. The caller closes it."""
        return clients.lightkube(self._endpoint, client="AsyncClient")

    async def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._context.submit(work))


class Cluster(Handle):
    """A control plane in this process, as a context manager.

    `packs` are packs of kinds to serve besides those of Kubernetes, `version` is the minor release of Kubernetes.
    `flags` are more flags of the API server, and `manager_flags` of the controller manager. `webhook_services` maps
    Services of webhooks and APIServices to addresses, as `{"NAMESPACE/NAME": "HOST:PORT"}`, if they run outside of the
    cluster. `images` maps images to local commands, as a map or the path of a YAML file: containers with these images
    run as local processes.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the cluster
        self,
        *,
        nodes: int = NODES,
        packs: str = PACKS,
        version: str = minors.NEWEST,
        flags: Sequence[str] = (),
        manager_flags: Sequence[str] = (),
        webhook_services: Mapping[str, str] | None = None,
        images: Mapping[str, Any] | Path | None = None,
    ) -> None:
        if not 0 <= nodes <= MAX_SIMULATED_NODES:
            raise ValueError(f"nodes must be from 0 to {MAX_SIMULATED_NODES}, not {nodes}")
        options = ClusterOptions(
            nodes=nodes,
            packs=packs,
            minor=_minor(version),
            flags=(*flags, *_service_flags(webhook_services or {})),
            manager_flags=tuple(manager_flags),
            images=images,
        )
        super().__init__(
            BackgroundContext[EmbeddedControlPlane](partial(control_plane, options), name="mockube")
        )

    @property
    def awaited(self) -> AsyncCluster:
        """The same cluster with asynchronous methods."""
        return AsyncCluster(self._context, self._clients)

    # --- start and stop

    def start(self) -> Self:
        """Start without a `with` block, for notebooks. Calling `stop` is optional: the cluster stops with the process."""
        self._start()
        try:
            self._context.opened.result()
        except Exception as error:
            self.stop()  # waits for the end of the thread, which has raised the error
            raise NotStarted(_reason(error)) from error
        except KeyboardInterrupt:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self._clients.close()
        self._context.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncCluster:
        self._start()
        try:
            await asyncio.wrap_future(self._context.opened)
        except Exception as error:
            await asyncio.wait([asyncio.wrap_future(self._context.ended)])
            self.stop()
            raise NotStarted(_reason(error)) from error
        except asyncio.CancelledError:
            self.stop()
            raise
        return self.awaited

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.stop()
        await asyncio.wait([asyncio.wrap_future(self._context.ended)])
        self.stop()

    def _start(self) -> None:
        try:
            self._context.start()
        except RuntimeError as error:
            raise NotStarted("a Cluster can be started once: create another one") from error
        weakref.finalize(self, self._context.close)

    # --- requests

    def apply(self, manifests: str | Path) -> Objects:
        """Apply the objects of a YAML text or file with server-side apply, and return the resulting objects."""
        return self._do(self._plane.client.apply(manifests))

    def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        timeout: float = TIMEOUT,
        *,
        namespace: str = "default",
    ) -> Parsed:
        """Wait until an object meets a condition, and return it; raise TimeoutError if it does not.

        The condition is the type of a status condition that must be True, or a predicate of the object.
        """
        client = self._plane.client
        return self._do(client.wait(kind, name, condition, seconds=timeout, namespace=namespace))

    def wait_gone(
        self, kind: str, name: str, timeout: float = TIMEOUT, *, namespace: str = "default"
    ) -> None:
        """Wait until the object does not exist; raise TimeoutError if it still does."""
        self._do(self._plane.client.wait_gone(kind, name, seconds=timeout, namespace=namespace))

    def get(self, kind: str, name: str, *, namespace: str = "default") -> Parsed:
        return self._do(self._plane.client.get(kind, name, namespace=namespace))

    def list(self, kind: str, *, namespace: str = "default", labels: str = "") -> Objects:
        """Return the objects that match a label selector; "" as the namespace means all namespaces."""
        return self._do(self._plane.client.list(kind, namespace=namespace, labels=labels))

    def delete(self, kind: str, name: str, *, namespace: str = "default") -> None:
        self._do(self._plane.client.delete(kind, name, namespace=namespace))

    def advance(self, seconds: float) -> None:
        """Advance the clock of server and controllers by some seconds, and run everything that is due by then."""
        self._do(self._plane.advance(seconds))

    # --- clients

    def lightkube(self) -> Any:
        """Return a `Client` of lightkube."""
        return self._close_at_end(clients.lightkube(self._endpoint))

    def kr8s(self) -> Any:
        """Return an API object of kr8s."""
        return clients.kr8s(self._endpoint)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._context.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise


def _reason(error: BaseException) -> str:
    """Return the message of an error, or of the first error in nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


def _minor(version: str) -> str:
    try:
        return read_minor(version)
    except ArgumentTypeError as error:
        raise ValueError(f"version: {error}") from error


def _service_flags(services: Mapping[str, str]) -> Iterator[str]:
    return (f"--webhook-service={name}={address}" for name, address in services.items())
