"""The thread-safe interface of a hosted control plane: its recorded calls, its log, and faults."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from mockube import clients
from mockube.embedded.background_loop import HostedRun
from mockube.embedded.control_plane import Plane
from mockube.embedded.faults import Cut, InjectedFault, Rule
from mockube.embedded.matching import Criteria, matcher
from mockube.embedded.recorder import Calls
from mockube.failure import Failure


class NotStarted(Failure):
    """There is no control plane: it was not started, it has ended, or it could not start, for the reason in the message."""


class Fault:
    """A fault that strikes until it is stopped, or a number of times. As a context manager, it stops at the end of the block."""

    def __init__(self, rule: Rule, hosted: HostedRun[Plane]) -> None:
        self._rule = rule
        self._hosted = hosted

    @property
    def hits(self) -> int:
        """How often it has."""
        return self._rule.hits

    def stop(self) -> None:
        """Delayed requests continue at once."""
        if not self._hosted.ended.done():
            faults = self._hosted.opened.result().faults
            self._hosted.call(lambda: faults.remove(self._rule))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Handle:
    """A control plane that is hosted, or is to be."""

    def __init__(self, hosted: HostedRun[Plane], clients: ExitStack | None = None) -> None:
        """`clients` are closed with the cluster."""
        self._hosted = hosted
        self._clients = clients or ExitStack()

    def __repr__(self) -> str:
        opened, ended = self._hosted.opened.done(), self._hosted.ended.done()
        return f"<mockube cluster {'stopped' if ended else self.url if opened else 'not started'}>"

    @property
    def kubeconfig(self) -> Path:
        return self._plane.site.kubeconfig

    @property
    def url(self) -> str:
        return self._plane.site.admin.server

    @property
    def complaints(self) -> Sequence[str]:
        """The newest warnings and errors of the server and the controllers, as they log them."""
        return self._plane.journal.lines()

    def calls(self, *, code: int | None = None, **criteria: Unpack[Criteria]) -> Calls:
        """Return the requests to the server since the cluster is ready, in order.

        Those of mockube's own controllers are left out unless `user` matches them. `verb`, `resource` and the like
        may be patterns; `code` is of the answer.
        """
        matches, recorder = matcher(criteria), self._plane.recorder
        calls = self._hosted.call(lambda: recorder.calls(matches, code))
        recorder.warn_of_dropped_calls()
        return calls

    def clear_calls(self) -> None:
        """Clear the recorded calls."""
        self._hosted.call(self._plane.recorder.clear)

    def inject(  # noqa: PLR0913 - by name alone, and one or two at a time
        self,
        *,
        status: int = 0,
        delay: float = 0.0,
        cut: Cut | None = None,
        times: int | None = None,
        after: int = 0,
        reason: str = "",
        message: str = "",
        retry_after: int = 1,
        **criteria: Unpack[Criteria],
    ) -> Fault:
        """Refuse requests with a status, hold them up for so many seconds, or cut their connection.

        It strikes requests that `calls` would find with the same criteria. The first `after` of them are spared, and
        after `times` of them it is over. To cut watches cuts those that run, too.
        """
        fault = InjectedFault(
            delay=delay, status=status, reason=reason, message=message, retry_after=retry_after, cut=cut
        )
        _check(fault, times)
        rule = Rule(matcher(criteria), fault, times=times, after=after)
        faults = self._plane.faults
        self._hosted.call(lambda: faults.add(rule))
        return Fault(rule, self._hosted)

    def stop_faults(self) -> None:
        """Stop all faults; delayed requests continue at once."""
        self._hosted.call(self._plane.faults.clear)

    def kubernetes(self) -> Any:
        """An `ApiClient` of the official client."""
        return self._closing(clients.kubernetes(self._endpoint))

    def kubernetes_asyncio(self) -> Any:
        """An `ApiClient` of kubernetes-asyncio, for the event loop that runs. It is yours to close."""
        return clients.kubernetes_asyncio(self._endpoint)

    def _closing(self, client: Any) -> Any:
        self._clients.callback(client.close)
        return client

    @property
    def _endpoint(self) -> clients.Endpoint:
        site = self._plane.site
        return clients.Endpoint(
            url=site.admin.server,
            authority=site.authority,
            token=site.admin.token,
            folder=site.kubeconfig.parent,
        )

    @property
    def _plane(self) -> Plane:
        opened, ended = self._hosted.opened, self._hosted.ended
        if ended.done():
            raise NotStarted("the cluster was stopped") from ended.exception()
        if not opened.done():
            raise NotStarted("the cluster was not started: use it as `with Cluster() as cluster`")
        return opened.result()


def _check(fault: InjectedFault, times: int | None) -> None:
    if not (fault.status or fault.delay or fault.cut):
        raise ValueError("a fault needs status, delay or cut")
    if fault.status and not 400 <= fault.status < 600:
        raise ValueError(f"status must be from 400 to 599, not {fault.status}")
    if fault.cut not in (None, "before", "after"):
        raise ValueError(f'cut must be "before" or "after", not {fault.cut!r}')
    if fault.delay < 0:
        raise ValueError(f"delay must not be negative, but is {fault.delay:g}")
    if times is not None and times < 1:
        raise ValueError(f"times must be at least 1, not {times}")
