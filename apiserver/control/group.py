"""The group `control.mockube.dev` of one server: a registry over a store of its own, and the strategies of the kinds.

A kind is added with its `ControlKind` in `KINDS`, and its `ControlStrategy` in `parts/control.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.watch_stream import OpenWatch
from mockube.apiserver.storage.journal import Journal
from mockube.apiserver.storage.watch_cache import WatchCache
from mockube.component_base.task_supervisor import TaskSupervisor

from .changes import CHANGE
from .clock import CLOCK
from .controllers import CONTROLLER
from .explanations import EXPLANATION
from .fault_objects import FAULT
from .forks import FORK
from .kind import ControlKind
from .marks import MARK
from .page_tokens import PAGE_TOKEN
from .participants import PARTICIPANT
from .requests import REQUEST
from .rewinds import REWIND
from .role_advice import ROLE_ADVICE
from .snapshots import SNAPSHOT
from .store import ControlStore
from .strategy import ControlAdmission, ControlStrategy

KINDS: Final[Sequence[ControlKind]] = (
    CHANGE,
    CLOCK,
    CONTROLLER,
    PARTICIPANT,
    EXPLANATION,
    FAULT,
    FORK,
    MARK,
    PAGE_TOKEN,
    REQUEST,
    REWIND,
    ROLE_ADVICE,
    SNAPSHOT,
)
"""All kinds of the group."""
MAX_AUTHORS: Final = 1_000
"""The entries of the group's own journal."""


class ControlGroup:
    """The objects of the group. They are in memory, and neither in the store of the cluster nor in its snapshots."""

    def __init__(self, cluster: Registry, kv: ControlStore, strategies: Sequence[ControlStrategy]) -> None:
        """`cluster` is the registry of the cluster, whose kinds, clock and authorization the group shares."""
        self._kv, self._strategies = kv, strategies
        self.registry: Registry = replace(
            cluster,
            kv=kv,
            watch_cache=WatchCache(kv, cluster.layout.root, clock=cluster.clock, read=_as_stored),
            admission=ControlAdmission(strategies),
            journal=Journal(cluster.clock, max_entries=MAX_AUTHORS),
            resource_caches={},
        )
        for strategy in strategies:
            self.registry.resource_cache(strategy.kind.group_resource)

    def verbs(self) -> OwnVerbs:
        """Return the verbs that are others than those of stored objects."""
        return {name: verbs for strategy in self._strategies for name, verbs in strategy.verbs().items()}

    def watches(self) -> Mapping[GroupResource, OpenWatch]:
        """Return what opens the watches of records."""
        return {name: opens for strategy in self._strategies for name, opens in strategy.watches().items()}

    async def start(self, supervisor: TaskSupervisor) -> None:
        supervisor.start("control-watch-cache", self.registry.watch_cache.run)
        await self.registry.watch_cache.progress.wait_listed()
        for strategy in self._strategies:
            await strategy.begin(self.registry)
            for name, run in strategy.tasks().items():
                supervisor.start(name, run)

    async def close(self) -> None:
        await self._kv.close()


def _as_stored(value: bytes) -> bytes:
    """Return a value as it is: only this server has written it."""
    return value
