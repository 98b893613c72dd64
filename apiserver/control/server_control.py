"""The group `control.mockube.dev` as the other parts of a server see it: `ServerControl`, or `NoControl` of a server without the group."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from msgspec import Struct

from mockube.apimachinery.groups import CONTROL, GroupResource
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.registry.moments import Moments, no_mark
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.watch_stream import OpenWatch
from mockube.apiserver.request.snapshot_endpoint import FindSnapshot
from mockube.component_base.clock import Idleness
from mockube.component_base.task_supervisor import TaskSupervisor
from mockube.etcd.kv import Revision

from .advances import AdvanceBy
from .clock import Clocks
from .fault_objects import Faults
from .faults import Fault, FaultInjector, InjectedFault
from .forks import CopyProcess, Forks
from .group import ControlGroup
from .marks import Marks
from .participants import ParticipantIdleness, Participants
from .snapshots import Snapshots


class FaultControl(Protocol):
    """By what the program in whose process the server runs injects faults."""

    async def inject(self, fault: Fault) -> InjectedFault:
        """Inject a valid fault."""

    async def stop(self, injected: InjectedFault) -> None: ...

    async def clear(self) -> None:
        """Stop all faults, also those that others have injected."""


class UnstoredFaults:
    """The faults of a server without objects of them."""

    def __init__(self, injector: FaultInjector) -> None:
        self._injector = injector

    async def inject(self, fault: Fault) -> InjectedFault:
        return self._injector.add(fault)

    async def stop(self, injected: InjectedFault) -> None:
        self._injector.remove(injected)

    async def clear(self) -> None:
        self._injector.clear()


class NoControl:
    """A server without the group."""

    def __init__(self, registry: Registry) -> None:
        self.moments = Moments(registry, no_mark)

    @property
    def sessions(self) -> PageSessions | None:
        """The sessions of the page."""
        return None

    @property
    def find_snapshot(self) -> FindSnapshot | None:
        """What finds the contents of Snapshots."""
        return None

    def verbs(self) -> OwnVerbs:
        """Return the verbs that are others than those of stored objects."""
        return {}

    def watches(self) -> Mapping[GroupResource, OpenWatch]:
        """Return what opens the watches of records."""
        return {}

    def registries(self) -> Mapping[str, Registry]:
        """Return the registry of the objects, by their group."""
        return {}

    def oldest_needed(self) -> Revision | None:
        """Return the oldest revision that has a name, whose history is not compacted; None if none has."""
        return None

    def faults_of(self, injector: FaultInjector) -> FaultControl:
        """Return by what the program in whose process the server runs injects faults."""
        return UnstoredFaults(injector)

    def with_participants(self, idleness: Idleness) -> Idleness:
        """Return the idleness of the cluster with that of its participants."""
        return idleness

    def use_advance(self, advance: AdvanceBy) -> None:
        """Let the program in whose process the server runs advance the clock."""

    def use_copy(self, copy_process: CopyProcess) -> None:
        """Let that program make the forks of now."""

    async def start(
        self, supervisor: TaskSupervisor, on_restored: list[Callable[[], Awaitable[None]]]
    ) -> None:
        """Start the tasks of the objects."""

    async def close(self) -> None:
        """Close the store of the objects."""


class ClockObjects(Struct, frozen=True, kw_only=True):
    """The objects of a clock that can be changed."""

    clocks: Clocks
    participants: Participants
    """The programs that an advance waits for."""


class ControlObjects(Struct, frozen=True, kw_only=True):
    """The objects that other parts use, too."""

    faults: Faults
    forks: Forks
    marks: Marks
    moments: Moments
    """Finds moments by the Marks, too."""
    sessions: PageSessions
    snapshots: Snapshots
    clock: ClockObjects | None
    """None if the clock cannot be changed."""


class ServerControl(NoControl):
    """A server with the group."""

    def __init__(self, objects: ControlObjects, group: ControlGroup) -> None:
        self.objects, self.group, self.moments = objects, group, objects.moments

    @property
    def sessions(self) -> PageSessions:
        return self.objects.sessions

    @property
    def find_snapshot(self) -> FindSnapshot:
        return self.objects.snapshots.data

    def verbs(self) -> OwnVerbs:
        return self.group.verbs()

    def watches(self) -> Mapping[GroupResource, OpenWatch]:
        return self.group.watches()

    def registries(self) -> Mapping[str, Registry]:
        return {CONTROL: self.group.registry}

    def oldest_needed(self) -> Revision | None:
        return self.objects.marks.oldest()

    def faults_of(self, injector: FaultInjector) -> FaultControl:  # noqa: ARG002 - the objects have it
        return self.objects.faults

    def with_participants(self, idleness: Idleness) -> Idleness:
        clock = self.objects.clock
        return idleness if clock is None else ParticipantIdleness(idleness, clock.participants)

    def use_advance(self, advance: AdvanceBy) -> None:
        if self.objects.clock is not None:
            self.objects.clock.clocks.use_advance(advance)

    def use_copy(self, copy_process: CopyProcess) -> None:
        self.objects.forks.use_copy(copy_process)

    async def start(
        self, supervisor: TaskSupervisor, on_restored: list[Callable[[], Awaitable[None]]]
    ) -> None:
        await self.group.start(supervisor)
        on_restored.append(self.objects.faults.partitions.compare_all)

    async def close(self) -> None:
        await self.group.close()
