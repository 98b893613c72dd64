"""What the manager runs: a runnable reads from the server while it decides, or reconciles nothing at all.

The application builds each with a context that has the credentials of its own service account, and runs it while the
process leads. A controller that reconciles keys is a `Controller`.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from msgspec import Struct, field

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.controller_manager.cache.informers import Informers
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.control.events.recorder import Recorders
from mockube.controller_manager.metrics.queues import Metrics

_A_DAY: Final = 86400.0


class Context(Struct, frozen=True, kw_only=True):
    """What a controller or an engine is given to work with."""

    client: Client
    """With the credentials of its own account."""
    informers: Informers
    """Shared by all; they run once everything is built."""
    clock: Clock
    random: Random
    recorder: Recorders
    metrics: Metrics
    options: Config
    names: frozenset[str]
    """Of everything that runs in this manager."""
    shared: dict[type, Any] = field(default_factory=dict)
    """Values that several runnables share, by type; the first that needs one creates it."""


class Running(Protocol):
    """Run until cancelled, and finish what was begun before returning."""

    async def run(self) -> None: ...


class Idle:
    """A `Running` that flags have turned off."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self._clock.sleep(_A_DAY)


class Runnable(Struct, frozen=True, kw_only=True):
    name: str
    """As `--controllers` names it: `garbage-collector-controller`."""
    service_account: str
    """Empty for one that is no controller, and shows what the process shows."""
    build: Callable[[Context], Running]
    """Called before the informers run; a runnable adds its handlers and indexes then, and reads nothing."""
