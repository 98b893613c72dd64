"""What a component over a client is made from, and how it runs: a controller, the scheduler, the kubelets."""

from typing import Any, Final, Protocol

from msgspec import Struct, field

from mockube.apimachinery.randomness import Random
from mockube.component_base.clock import Clock

from .cache.informer import Informers
from .events.recorder import Recorders
from .metrics.process import Metrics
from .verbs import Client

_DAY_SECONDS: Final = 86400.0


class ComponentContext(Struct, frozen=True, kw_only=True):
    """The dependencies of a component."""

    client: Client
    """The client with the credentials of its service account."""
    informers: Informers
    """The shared informers, which start after everything is built."""
    clock: Clock
    random: Random
    recorder: Recorders
    metrics: Metrics
    shared: dict[type, Any] = field(default_factory=dict)
    """Values that several components share, by type; the first component that needs one creates it."""


class Runner(Protocol):
    """A part of the manager that runs until cancelled, and finishes its current work before it returns."""

    async def run(self) -> None: ...


class IdleRunner:
    """The runner of a part that flags disable: it does nothing until cancelled."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self._clock.routine.sleep(_DAY_SECONDS)
