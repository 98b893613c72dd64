"""ClockParticipant: a program outside of the cluster, such as an operator under test, for which an advance of the clock waits.

The program follows the time of the cluster, and writes into its object at which time it has nothing left to do, and when it has
something to do next. An advance stops at that time, and goes on when every participant is idle at the time that the clock shows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from msgspec import Struct

from mockube.apimachinery import errors, meta, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.timestamps import TimestampError, format_micro_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.component_base.clock import ClusterClock, Idleness, Timer
from mockube.component_base.supervision import timeout

from .kind import AGE, ControlKind
from .schemas import column, text
from .strategy import ControlStrategy

MAX_WAIT_SECONDS: Final = 30.0
"""The seconds of the machine in which a participant must become idle."""
MIN_STEP_SECONDS: Final = 0.001

PARTICIPANT: Final = ControlKind(
    name="ClockParticipant",
    plural="clockparticipants",
    description="ClockParticipant is a program outside of the cluster for which each advance of the Clock waits. The program writes it, "
    "and deletes it at its end.",
    spec={
        "description": "What the program says of itself, by the time of the cluster.",
        "properties": {
            "idleAt": text(
                "The time of the cluster at which it has nothing left to do. An advance waits until that is the time of the Clock.",
                format="date-time",
            ),
            "nextTimer": text(
                "The time of the cluster at which it has something to do next. An advance stops there, at most two seconds late.",
                format="date-time",
            ),
        },
    },
    columns=(
        column("Idle At", ".spec.idleAt", "The time at which it has nothing left to do."),
        column("Next Timer", ".spec.nextTimer", "The time at which it has something to do next."),
        AGE,
    ),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    max_objects=100,
)


class _Participant(Struct, frozen=True, kw_only=True):
    idle_at: datetime | None
    next_timer: datetime | None
    timer: Timer | None
    """A timer of the clock at that time, so that an advance neither leaps nor steps over it."""


class Participants(ControlStrategy):
    """The objects, and what an advance waits for."""

    kind = PARTICIPANT
    prefix: bytes

    def __init__(self, clock: ClusterClock) -> None:
        self._clock = clock
        self._participants: dict[str, _Participant] = {}
        self._changed = asyncio.Event()

    async def begin(self, registry: Registry) -> None:
        cache = registry.resource_cache(PARTICIPANT.group_resource)
        self.prefix = cache.prefix
        cache.watchers.add(self)

    async def check(self, new: ReadOnlyTree, _old: ReadOnlyTree | None) -> Iterable[FieldError]:
        return [*_check_times(new.get("spec") or {})]

    def handle_change(self, change: Change) -> None:
        tree = change.after.tree()
        name = meta.name(tree)
        before = self._participants.pop(name, None)
        if before is not None and before.timer is not None:
            before.timer.cancel()
        if change.kind is not ChangeKind.DELETED:
            self._participants[name] = self._read(tree.get("spec") or {})
        self._changed.set()

    def handle_missed_change(self) -> None:
        """Do nothing: the next change of the object is handled."""

    def _read(self, spec: ReadOnlyTree) -> _Participant:
        next_timer = _time(spec.get("nextTimer"))
        remaining = 0.0 if next_timer is None else (next_timer - self._clock.now()).total_seconds()
        timer = self._clock.call_later(remaining, _do_nothing) if remaining > 0 else None
        return _Participant(idle_at=_time(spec.get("idleAt")), next_timer=next_timer, timer=timer)

    def busy(self, now: datetime) -> Sequence[str]:
        """Return the names of the participants that are not idle at a time."""
        return [
            name
            for name, participant in self._participants.items()
            if participant.idle_at is None or participant.idle_at < now
        ]

    def limit(self, seconds: float, now: datetime) -> float:
        """Return the seconds of a step that ends at the next timer of a participant, if it has one in the step."""
        timers = [each.next_timer for each in self._participants.values() if each.next_timer is not None]
        later = [(timer - now).total_seconds() for timer in timers if timer > now]
        return max(min([seconds, *later]), MIN_STEP_SECONDS)

    async def settle(self, clock: ClusterClock, wait: Callable[[], Awaitable[None]]) -> None:
        """Wait until all participants are idle at the time of the clock, and nothing follows from what they did."""
        until = clock.real.monotonic() + MAX_WAIT_SECONDS
        while True:
            await wait()
            if not self.busy(clock.now()):
                return
            self._changed.clear()
            try:
                async with timeout(clock.real, max(until - clock.real.monotonic(), 0.0)):
                    await self._changed.wait()
            except TimeoutError:
                raise self._late(clock.now()) from None

    def _late(self, now: datetime) -> Exception:
        names = ", ".join(self.busy(now)) or "none"
        return status.timeout(
            f"not idle at {format_micro_time(now)} within {MAX_WAIT_SECONDS:.0f} seconds of the machine: the participants {names}. "
            "Delete the ClockParticipant of a program that has ended",
            0,
        )


class ParticipantIdleness:
    """The idleness of a cluster with participants."""

    def __init__(self, idleness: Idleness, participants: Participants) -> None:
        self._idleness, self._participants = idleness, participants

    async def wait(self, clock: ClusterClock) -> None:
        await self._participants.settle(clock, partial(self._idleness.wait, clock))


def _check_times(spec: ReadOnlyTree) -> Iterator[FieldError]:
    """Yield the errors of times that have the format of one, and that no clock can show."""
    for name, value in spec.items():
        try:
            _time(value)
        except TimestampError as error:
            yield errors.invalid(ROOT.child("spec").child(name), value, str(error))


def _time(value: object) -> datetime | None:
    return parse_time(value) if isinstance(value, str) else None


def _do_nothing() -> None:
    """Let the clock stop: the program acts by itself."""
