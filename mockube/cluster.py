"""`mockube.Cluster`: a control plane in this process for notebooks, scripts and tests, which stops at the end of its block.

It runs in an event loop in a background thread: `with` returns a cluster whose methods block, and `async with` one
whose methods are awaited. Methods that neither block nor are awaited are in `Handle`.
"""

import asyncio
import weakref
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from mockube.apimachinery.schema import minors
from mockube.component_base.loop import new_forkable_loop
from mockube.component_base.release_options import read_minor
from mockube.component_base.supervision import first_cause
from mockube.container_runtime.simulation_values import ASSUME
from mockube.embedded.background_loop import BackgroundContext
from mockube.embedded.control_plane import ClusterOptions, EmbeddedControlPlane, control_plane
from mockube.embedded.determinism import SeededLoop
from mockube.embedded.handle import AwaitedClients, BlockingClients, Fault, Handle, NotStarted
from mockube.failure import Failure
from mockube.forked_cluster import AsyncForkedCluster, AwaitedFork, ForkedCluster
from mockube.kubelet.installation import MAX_CONTROL_PLANES
from mockube.kubelet.node_pools.pool import MAX_SIMULATED_NODES, NodePools, PoolError, plain_nodes
from mockube.launch import KUBEADM, MINIMAL, NODES, PACKS, PROFILES
from mockube.objects.arguments import read_count, read_span
from mockube.objects.awaited import AwaitedObjectMethods
from mockube.objects.blocking import ObjectMethods

__all__ = ["AsyncCluster", "AsyncForkedCluster", "Cluster", "Fault", "ForkedCluster", "NotStarted"]


class AsyncCluster(Handle, AwaitedClients, AwaitedObjectMethods):
    """A running cluster with asynchronous methods, which `async with Cluster()` returns."""

    async def advance(self, seconds: float) -> None:
        """Advance the clock of server and controllers by some seconds, and run everything that is due by then.

        While nothing happens in the cluster, the clock leaps to the next moment at which something does, and what repeats until then,
        such as the heartbeats of nodes, takes place once. A day of three idle nodes takes about a second.
        """
        __tracebackhide__ = True
        await self._do(lambda _: self._plane.advance(read_span(seconds)))

    def fork(self) -> AbstractAsyncContextManager[AsyncForkedCluster]:
        """Return a block with a fork of the cluster: `async with cluster.fork() as other:`, as `Cluster.fork`."""
        return AwaitedFork(self._start_fork, self)


class Cluster(Handle, BlockingClients, ObjectMethods):
    """A control plane in this process, as a context manager.

    `nodes` are the simulated nodes: a number, or pools in the forms of `--simulate-nodes`, of which a list of dicts has the
    fields of a file. `packs` are packs of kinds to serve besides those of Kubernetes, `version` is the minor release of Kubernetes.
    `flags` are more flags of the API server, and `manager_flags` of the controller manager. `webhook_services` maps
    Services of webhooks and APIServices to addresses, as `{"NAMESPACE/NAME": "HOST:PORT"}`, if they run outside of the
    cluster. `images` maps images to local commands, as a map or the path of a YAML file: containers with these images
    run as local processes; a map whose entries all have `names` describes images of simulated containers. `unknown_programs` is what becomes of programs of simulated containers that are not simulated, as of
    `--unknown-programs`. `scheduler_plugins` are filters and scores of your own, subclasses of `SchedulerPlugin`.
    `profile="kubeadm"` adds what a cluster of kubeadm has, with `control_planes` nodes: static pods, kube-proxy, CoreDNS.
    `seed` makes runs the same: names, uids, addresses, times and the order of all changes. The clock of such a cluster begins at the
    first day of 2026, stands still between two calls of its methods, and passes as far as a call needs.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the cluster
        self,
        *,
        nodes: int | str | Path | Sequence[Mapping[str, Any]] = NODES,
        packs: str = PACKS,
        version: str = minors.NEWEST,
        flags: Sequence[str] = (),
        manager_flags: Sequence[str] = (),
        webhook_services: Mapping[str, str] | None = None,
        images: Mapping[str, Any] | Path | None = None,
        unknown_programs: str = ASSUME,
        scheduler_plugins: Sequence[object] = (),
        profile: str = MINIMAL,
        control_planes: int = 1,
        seed: int | None = None,
    ) -> None:
        __tracebackhide__ = True
        _check_profile(profile, control_planes)
        _check_types(
            nodes=nodes,
            packs=packs,
            version=version,
            flags=flags,
            manager_flags=manager_flags,
            webhook_services=webhook_services,
            images=images,
            unknown_programs=unknown_programs,
            seed=seed,
        )
        options = ClusterOptions(
            nodes=_pools(nodes),
            packs=packs,
            minor=_minor(version),
            flags=(*flags, *_service_flags(webhook_services or {})),
            manager_flags=(f"--unknown-programs={unknown_programs}", *manager_flags),
            images=images,
            scheduler_plugins=tuple(scheduler_plugins),
            profile=profile,
            control_planes=control_planes,
            seed=seed,
        )
        super().__init__(
            BackgroundContext[EmbeddedControlPlane](
                partial(control_plane, options),
                name="mockube",
                new_loop=new_forkable_loop if seed is None else SeededLoop,
            )
        )

    @property
    def awaited(self) -> AsyncCluster:
        """The same cluster with asynchronous methods."""
        return AsyncCluster(self._context, self._clients, self._forks)

    # --- start and stop

    def start(self) -> Self:
        """Start without a `with` block, for notebooks. Calling `stop` is optional: the cluster stops with the process."""
        __tracebackhide__ = True
        self._start()
        try:
            self._context.opened.result()
        except Exception as error:  # noqa: BLE001 - it is raised as the reason
            self.stop()  # waits for the end of the thread, which has raised the error
            raise NotStarted(_reason(error)) from _unexplained(error)
        except KeyboardInterrupt:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop the cluster and its forks. Its objects are lost."""
        self._clients.close()
        self._forks.stop()
        self._context.close()

    def __enter__(self) -> Self:
        __tracebackhide__ = True
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncCluster:
        self._start()
        try:
            await asyncio.wrap_future(self._context.opened)
        except Exception as error:  # noqa: BLE001 - as above
            await asyncio.wait([asyncio.wrap_future(self._context.ended)])
            self.stop()
            raise NotStarted(_reason(error)) from _unexplained(error)
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

    # --- time

    def advance(self, seconds: float) -> None:
        """Advance the clock of server and controllers by some seconds, and run everything that is due by then.

        While nothing happens in the cluster, the clock leaps to the next moment at which something does, and what repeats until then,
        such as the heartbeats of nodes, takes place once. A day of three idle nodes takes about a second.
        """
        __tracebackhide__ = True
        self._do(lambda _: self._plane.advance(read_span(seconds)))

    # --- forks

    def fork(self) -> ForkedCluster:
        """Fork the cluster in some milliseconds: `with cluster.fork() as other:`.

        The fork has everything that this cluster has now, in a process of its own: what happens in one does not happen in the
        other. It has another address. It is stopped at the end of the block, by `stop`, or with this cluster.
        """
        __tracebackhide__ = True
        return ForkedCluster(self._start_fork(), self)

    # --- clients


def _check_profile(profile: str, control_planes: int) -> None:
    __tracebackhide__ = True
    if profile not in PROFILES:
        raise ValueError(f"profile must be {' or '.join(PROFILES)}, not {profile!r}")
    if not 1 <= read_count(control_planes, "control_planes") <= MAX_CONTROL_PLANES:
        raise ValueError(f"control_planes must be from 1 to {MAX_CONTROL_PLANES}, not {control_planes}")
    if control_planes > 1 and profile == MINIMAL:
        raise ValueError(f"control_planes needs profile={KUBEADM!r}")


def _check_types(**options: object) -> None:
    __tracebackhide__ = True
    for name, value in options.items():
        types, description = _OPTION_TYPES[name]
        is_wrong_list = types is Sequence and (isinstance(value, str) or not _are_texts(value))
        if not isinstance(value, types) or isinstance(value, bool) or is_wrong_list:
            raise TypeError(f"{name} must be {description}, not {value!r}")


def _are_texts(values: Any) -> bool:
    return isinstance(values, Sequence) and all(isinstance(value, str) for value in values)


_OPTION_TYPES: Final[Mapping[str, tuple[Any, str]]] = {
    "nodes": (int | str | Path | Sequence, "an int, a str, a Path or a list of dicts"),
    "packs": (str, "a str, with commas between the names"),
    "version": (str, 'a str, such as "1.33"'),
    "flags": (Sequence, 'a list of str, such as ["--event-ttl=5m"]'),
    "manager_flags": (Sequence, 'a list of str, such as ["--controllers=*,-job"]'),
    "webhook_services": (Mapping | None, "a dict"),
    "unknown_programs": (str, 'a str, such as "fail"'),
    "images": (Mapping | Path | None, "a dict or a Path"),
    "seed": (int | None, "an int"),
}


def _reason(error: BaseException) -> str:
    """Return the message of an error."""
    cause = first_cause(error)
    return str(cause) or type(cause).__name__


def _unexplained(error: Exception) -> Exception | None:
    """Return an error, unless its message explains it."""
    return None if isinstance(first_cause(error), (ValueError, OSError, Failure)) else error


def _pools(nodes: int | str | Path | Sequence[Mapping[str, Any]]) -> NodePools:
    __tracebackhide__ = True
    if isinstance(nodes, int) and 0 <= nodes <= MAX_SIMULATED_NODES:
        return plain_nodes(nodes)
    from mockube.kubelet.node_pools.reading import read_value  # noqa: PLC0415 - most clusters have a number

    try:
        return read_value(nodes)
    except PoolError as error:
        raise ValueError(f"nodes: {error}") from error


def _minor(version: str) -> str:
    __tracebackhide__ = True
    try:
        return read_minor(version)
    except ArgumentTypeError as error:
        raise ValueError(f"version: {error}") from error


def _service_flags(services: Mapping[str, str]) -> Iterator[str]:
    return (f"--webhook-service={name}={address}" for name, address in services.items())
