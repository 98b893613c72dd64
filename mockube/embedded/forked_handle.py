"""The handle of a fork: its objects over HTTPS, and what no API of Kubernetes offers by commands to its process."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import Final, TypeVar

from mockube.apiserver.control import faults
from mockube.apiserver.control.matching import Match
from mockube.component_base.clock import Leap
from mockube.default_cluster.target import Target
from mockube.failure import Failure
from mockube.objects.requests import ObjectRequests, Work

from . import fork_messages as messages
from .calls import Calls
from .handle import ClusterHandle, Fault, NotStarted
from .running_fork import RunningFork

T = TypeVar("T")

_STOPPED: Final = "the fork was stopped"


class ForkedHandle(ClusterHandle):
    def __init__(self, fork: RunningFork, parent: ClusterHandle, clients: ExitStack | None = None) -> None:
        """Create a handle of a fork; `clients` are closed with it. A parent that nothing else refers to goes on until it ends."""
        self._running = fork
        self._parent = parent
        self._clients = clients or ExitStack()

    def __repr__(self) -> str:
        state = self._running.url if self._running.process.is_running else "stopped"
        return f"<fork of a mockube cluster {state}>"

    @property
    def url(self) -> str:
        """The URL of the server."""
        __tracebackhide__ = True
        self._check_running()
        return self._running.url

    @property
    def complaints(self) -> Sequence[str]:
        """The newest warnings and errors of the server and the controllers, as they log them."""
        lines: Sequence[str] = self._call(messages.ListComplaints(), list[str])
        return lines

    @property
    def leaps(self) -> Sequence[Leap]:
        """The newest spans of time over which `advance` has leaped, also before the fork."""
        leaps: Sequence[Leap] = self._call(messages.ListLeaps(), list[Leap])
        return leaps

    def clear_calls(self) -> None:
        """Clear the recorded calls."""
        self._call(messages.ClearCalls(), None)

    def stop_faults(self) -> None:
        """Stop all faults, also those that were injected before the fork; delayed requests continue at once."""
        self._call(messages.ClearFaults(), None)

    @property
    def _target(self) -> Target:
        __tracebackhide__ = True
        self._check_running()
        return self._running.target

    def _check_match(self, match: Match) -> None:
        __tracebackhide__ = True
        self._call(messages.CheckMatch(match=match), None)

    def _recorded_calls(self, match: Match, code: int | None) -> tuple[Calls, int]:
        found = self._call(messages.ListCalls(match=match, code=code), messages.RecordedCalls)
        return Calls(found.calls, verbs=match.verbs, other_verbs=found.other_verbs), found.dropped

    def _add_fault(self, fault: faults.Fault) -> Fault:
        number = self._call(messages.AddFault(fault=fault), int)

        def remove() -> None:
            if self._running.process.is_running:
                self._call(messages.RemoveFault(number=number), None)

        return Fault(partial(self._call, messages.CountHits(number=number), int), remove)

    def _call(self, command: messages.ForkCommand, result: type[T] | None) -> T:
        __tracebackhide__ = True
        self._check_running()
        value: T = self._running.process.call(command, result)
        return value

    @property
    def _requests(self) -> ObjectRequests:
        __tracebackhide__ = True
        self._check_running()
        return self._running.requests

    def _submit(self, work: Work[T]) -> "Future[T]":
        return self._running.submit(work)

    def _closed(self) -> Failure:
        return NotStarted(_STOPPED)

    def _check_running(self) -> None:
        __tracebackhide__ = True
        if not self._running.process.is_running:
            raise NotStarted(_STOPPED)
