"""The commands of a handle, as the process of a fork executes them. Forking is in `process_fork`."""

import logging
from collections.abc import Callable, Mapping
from inspect import isawaitable
from itertools import count
from typing import Any, Final

from mockube.apimachinery.status import ApiError
from mockube.apiserver.control.faults import InjectedFault
from mockube.apiserver.control.served_names import check_requests
from mockube.component_base.clock import Leap
from mockube.failure import Failure

from . import fork_messages as messages
from .calls import recorded_calls
from .control_plane import EmbeddedControlPlane

LOG: Final = logging.getLogger(__name__)


class CommandRunner:
    def __init__(self, plane: EmbeddedControlPlane) -> None:
        self._plane = plane
        self._faults: dict[int, InjectedFault] = {}
        """The faults of the handle, by their numbers."""
        self._numbers = count(1)

    async def run(self, command: messages.ForkCommand) -> messages.Response:
        """Execute a command, and return its response."""
        try:
            result = _RUN[type(command)](self, command)
            return messages.result_of(await result if isawaitable(result) else result)
        except ValueError as error:
            return messages.Refused(message=str(error), is_invalid=True)
        except (ApiError, Failure) as error:
            return messages.Refused(message=str(error))
        except Exception as error:  # the fork goes on, as a cluster does
            LOG.exception("the command of a fork failed")
            return messages.Refused(message=f"{type(error).__name__}: {error}")

    def list_calls(self, command: messages.ListCalls) -> messages.RecordedCalls:
        recorder = self._plane.recorder
        calls = recorded_calls(recorder, command.match, command.code)
        return messages.RecordedCalls(
            calls=calls, other_verbs=calls.other_verbs, dropped=recorder.dropped_count
        )

    def clear_calls(self, _: messages.ClearCalls) -> None:
        self._plane.recorder.clear()

    def list_complaints(self, _: messages.ListComplaints) -> list[str]:
        return [*self._plane.log.lines()]

    def list_leaps(self, _: messages.ListLeaps) -> list[Leap]:
        return [*self._plane.clock.leaps]

    def check_match(self, command: messages.CheckMatch) -> None:
        check_requests(command.match, [*self._plane.server.api_server.catalog.rows.values()])

    async def advance(self, command: messages.AdvanceClock) -> None:
        await self._plane.advance(command.seconds)

    async def pass_time(self, command: messages.PassTime) -> messages.PassedTime:
        stepped, clock = self._plane.stepped, self._plane.clock
        assert stepped is not None
        seen = await stepped.pass_time(command.seen)
        return messages.PassedTime(seen=seen, monotonic=clock.monotonic())

    async def add_fault(self, command: messages.AddFault) -> int:
        number = next(self._numbers)
        self._faults[number] = await self._plane.inject(command.fault)
        return number

    def count_hits(self, command: messages.CountHits) -> int:
        return self._faults[command.number].hits

    async def remove_fault(self, command: messages.RemoveFault) -> None:
        await self._plane.stop_fault(self._faults[command.number])

    async def clear_faults(self, _: messages.ClearFaults) -> None:
        await self._plane.stop_faults()


_RUN: Final[Mapping[type[messages.ForkCommand], Callable[[CommandRunner, Any], Any]]] = {
    messages.AdvanceClock: CommandRunner.advance,
    messages.PassTime: CommandRunner.pass_time,
    messages.ListCalls: CommandRunner.list_calls,
    messages.ClearCalls: CommandRunner.clear_calls,
    messages.ListComplaints: CommandRunner.list_complaints,
    messages.ListLeaps: CommandRunner.list_leaps,
    messages.CheckMatch: CommandRunner.check_match,
    messages.AddFault: CommandRunner.add_fault,
    messages.CountHits: CommandRunner.count_hits,
    messages.RemoveFault: CommandRunner.remove_fault,
    messages.ClearFaults: CommandRunner.clear_faults,
}
