"""The thread-safe interface of a cluster, and of one in a background thread: recorded calls, log, and faults."""

import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, Unpack

from mockube import clients
from mockube.apiserver.control import effects, faults
from mockube.apiserver.control.matching import Match
from mockube.apiserver.control.served_names import check_requests
from mockube.component_base.clock import Leap
from mockube.default_cluster.block import DefaultCluster
from mockube.default_cluster.target import Target
from mockube.failure import Failure
from mockube.objects.arguments import read_count, read_seconds
from mockube.objects.requests import ObjectRequests, Work
from mockube.objects.senders import RequestSender

from . import process_fork
from .background_loop import BackgroundContext
from .calls import Calls, recorded_calls, warn_of_dropped_calls
from .control_plane import EmbeddedControlPlane
from .criteria import Criteria, match_of
from .running_fork import Forks, RunningFork

T = TypeVar("T")

_STOPPED: Final = "the cluster was stopped"


class NotStarted(Failure):
    """The control plane does not run: it was not started, was stopped, or failed to start. The message has the reason."""


class Fault:
    """An injected fault. It ends when it is stopped, after a number of hits, or, as a context manager, at the end of the block."""

    def __init__(self, count_hits: Callable[[], int], remove: Callable[[], None]) -> None:
        self._count_hits = count_hits
        self._remove = remove

    @property
    def hits(self) -> int:
        """The number of requests that got the fault."""
        return self._count_hits()

    def stop(self) -> None:
        """Stop the fault; delayed requests continue at once."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class ClusterHandle(RequestSender):
    """A running cluster, with the methods that neither block nor are awaited, over what kinds of clusters do each in their way."""

    _clients: ExitStack
    """What is closed with the cluster."""

    @property
    def kubeconfig(self) -> Path:
        """The path of a kubeconfig with the administrator's credentials."""
        return self._target.kubeconfig

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._target.url

    @property
    def leaps(self) -> Sequence[Leap]:
        """The newest spans of time over which `advance` has leaped, with `start` and `end`.

        In a leap nothing happened but heartbeats of nodes and the like, of which the history has only the last ones.
        """
        raise NotImplementedError

    @property
    def complaints(self) -> Sequence[str]:
        """The newest warnings and errors of the server and the controllers, as they log them."""
        raise NotImplementedError

    def calls(self, *, code: int | None = None, **criteria: Unpack[Criteria]) -> Calls:
        """Return the recorded requests to the server that match the criteria, in order.

        Requests of mockube's own controllers are included only if `user` matches them. The criteria except `verb` may
        have the wildcards `*` and `?`; `code` is the status code of the response. Criteria that no request can meet are an error.
        """
        __tracebackhide__ = True
        if code is not None and not 100 <= read_count(code, "code") < 600:
            raise ValueError(f"code must be from 100 to 599, not {code}")
        match = match_of(criteria)
        self._check_match(match)
        calls, dropped_count = self._recorded_calls(match, code)
        warn_of_dropped_calls(dropped_count)
        return calls

    def clear_calls(self) -> None:
        """Clear the recorded calls."""
        raise NotImplementedError

    def inject(  # noqa: PLR0913 - by name alone, and one or two at a time
        self,
        *,
        status: int = 0,
        delay: float = 0.0,
        cut: Literal["before", "after"] | None = None,
        times: int | None = None,
        after: int = 0,
        reason: str = "",
        message: str = "",
        retry_after: int = 1,
        **criteria: Unpack[Criteria],
    ) -> Fault:
        """Refuse matching requests with a status code, delay them by some seconds, or cut their connection.

        The criteria are those of `calls`. The first `after` matching requests are not affected, and after `times` of them
        the fault ends. `cut` also cuts matching watches in progress.
        """
        __tracebackhide__ = True
        seconds, code = read_seconds(delay, "delay"), read_count(status, "status")
        if not (code or seconds or cut):
            raise ValueError("a fault needs status, delay or cut")
        match = match_of(criteria)
        self._check_match(match)
        fault = faults.Fault(
            match=match,
            delay=effects.Delay(seconds=seconds) if seconds else None,
            cut=effects.Cut(when=cut) if cut else None,
            refuse=effects.Refuse(status=code, reason=reason, message=message, retry_after=retry_after)
            if code
            else None,
            times=None if times is None else read_count(times, "times", minimum=1),
            skip=read_count(after, "after"),
        )
        fault.check()
        return self._add_fault(fault)

    def stop_faults(self) -> None:
        """Stop all faults; delayed requests continue at once."""
        raise NotImplementedError

    def as_default(self) -> DefaultCluster:
        """Return a block, `with` or `async with`, in which this cluster is the default of the process.

        Programs that are not told which cluster to use then use this one: child processes by `KUBECONFIG`, and in this process
        `kubernetes`, `kubernetes_asyncio`, kr8s, lightkube, pykube and kopf, even if they were imported before. Connections to
        the servers of your own kubeconfigs are refused. The block applies to all threads; everything is restored after it.
        """
        target = self._target
        return DefaultCluster(lambda: target)

    def kubernetes(self) -> Any:
        """Return an `ApiClient` of the official client."""
        __tracebackhide__ = True
        return self._close_at_end(clients.kubernetes(self._endpoint))

    def kubernetes_asyncio(self) -> Any:
        """Return an `ApiClient` of kubernetes-asyncio, for the running event loop. The caller closes it."""
        __tracebackhide__ = True
        return clients.kubernetes_asyncio(self._endpoint)

    def _close_at_end(self, client: Any) -> Any:
        self._clients.callback(client.close)
        return client

    @property
    def _endpoint(self) -> clients.ClientConfig:
        target = self._target
        assert target.authority is not None
        return clients.ClientConfig(
            url=target.url,
            authority=target.authority,
            token=target.token,
            folder=target.kubeconfig.parent,
        )

    @property
    def _target(self) -> Target:
        """The server, and the administrator's credentials."""
        raise NotImplementedError

    def _check_match(self, match: Match) -> None:
        """Raise ValueError for criteria that no request can meet."""
        raise NotImplementedError

    def _recorded_calls(self, match: Match, code: int | None) -> tuple[Calls, int]:
        """Return the matching calls, and the number of calls that were dropped."""
        raise NotImplementedError

    def _add_fault(self, fault: faults.Fault) -> Fault:
        raise NotImplementedError


class AwaitedClients(ClusterHandle):
    """Clients of other projects for the caller's event loop."""

    async def kr8s(self) -> Any:
        """Return an API object of `kr8s.asyncio`."""
        __tracebackhide__ = True
        return await clients.kr8s_async(self._endpoint)

    def lightkube(self) -> Any:
        """Return an `AsyncClient` of lightkube. The caller closes it."""
        __tracebackhide__ = True
        return clients.lightkube(self._endpoint, client="AsyncClient")


class BlockingClients(ClusterHandle):
    """Clients of other projects whose methods block."""

    def lightkube(self) -> Any:
        """Return a `Client` of lightkube."""
        __tracebackhide__ = True
        return self._close_at_end(clients.lightkube(self._endpoint))

    def kr8s(self) -> Any:
        """Return an API object of kr8s."""
        __tracebackhide__ = True
        return clients.kr8s(self._endpoint)


class Handle(ClusterHandle):
    """A control plane in a background thread, started or not."""

    def __init__(
        self,
        context: BackgroundContext[EmbeddedControlPlane],
        clients: ExitStack | None = None,
        forks: Forks | None = None,
    ) -> None:
        """Create a handle of a context; `clients` are closed with the cluster, and `forks` are stopped."""
        self._context = context
        self._clients = clients or ExitStack()
        self._forks = forks or Forks()

    def __repr__(self) -> str:
        opened, ended = self._context.opened.done(), self._context.ended.done()
        return f"<mockube cluster {'stopped' if ended else self.url if opened else 'not started'}>"

    @property
    def complaints(self) -> Sequence[str]:
        """The newest warnings and errors of the server and the controllers, as they log them."""
        return self._plane.log.lines()

    @property
    def leaps(self) -> Sequence[Leap]:
        clock = self._plane.clock
        return self._context.call(lambda: [*clock.leaps])

    def clear_calls(self) -> None:
        """Clear the recorded calls."""
        self._context.call(self._plane.recorder.clear)

    def stop_faults(self) -> None:
        """Stop all faults; delayed requests continue at once."""
        self._context.submit(self._plane.stop_faults()).result()

    @property
    def _target(self) -> Target:
        __tracebackhide__ = True
        server = self._plane.server
        return Target(
            kubeconfig=server.kubeconfig,
            url=server.admin.server,
            token=server.admin.token,
            authority=server.authority,
        )

    def _check_match(self, match: Match) -> None:
        __tracebackhide__ = True
        check_requests(match, [*self._plane.server.api_server.catalog.rows.values()])

    def _recorded_calls(self, match: Match, code: int | None) -> tuple[Calls, int]:
        recorder = self._plane.recorder
        calls = self._context.call(lambda: recorded_calls(recorder, match, code))
        return calls, recorder.dropped_count

    def _add_fault(self, fault: faults.Fault) -> Fault:
        plane = self._plane
        injected = self._context.submit(plane.inject(fault)).result()

        def remove() -> None:
            if not self._context.ended.done():
                self._context.submit(plane.stop_fault(injected)).result()

        return Fault(lambda: injected.hits, remove)

    def _start_fork(self) -> RunningFork:
        __tracebackhide__ = True
        plane = self._plane

        def start(theirs: socket.socket) -> int:
            return self._submit(process_fork.fork(self._context, plane, theirs)).result()

        return self._forks.start(start, plane.server, is_child=True)

    @property
    def _requests(self) -> ObjectRequests:
        __tracebackhide__ = True
        return self._plane.requests

    def _submit(self, work: Work[T]) -> "Future[T]":
        stepped = self._plane.stepped
        return self._context.submit(work if stepped is None else stepped.run(work))

    def _closed(self) -> Failure:
        return NotStarted(_STOPPED)

    @property
    def _plane(self) -> EmbeddedControlPlane:
        __tracebackhide__ = True
        opened, ended = self._context.opened, self._context.ended
        if ended.done():
            raise NotStarted(_STOPPED) from ended.exception()
        if not opened.done():
            raise NotStarted("the cluster was not started: use it as `with Cluster() as cluster`")
        return opened.result()
