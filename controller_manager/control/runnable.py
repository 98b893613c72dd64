"""Runnables: the parts of the manager that read from the server while they decide, or reconcile no keys.

The application builds each with a context that has the credentials of its own service account, and runs it while the
process leads. A controller that reconciles keys is a `Controller`. A part whose resources are not served yet waits for
them: custom resources may appear at any time.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, field

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError, NotFound
from mockube.controller_manager.cache.informer import Informers
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.resources import Resource
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.control.events.recorder import Recorders
from mockube.controller_manager.metrics.controllers import Metrics

LOG: Final = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 30.0
"""The interval at which missing resources are looked up."""
_A_DAY: Final = 86400.0


class Context(Struct, frozen=True, kw_only=True):
    """What controllers and runnables work with."""

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
    """The names of everything that runs in this manager."""
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
    """Empty for one that is not a controller, and uses the credentials of the process."""
    build: Callable[[Context], Running]
    """Called before the informers run; a runnable adds its handlers and indexes then, and reads nothing."""


class WaitForKinds:
    """Builds and runs a runnable once its resources are served. Informers retry resources that disappear later.

    Requests exactly the versions that are needed: a server may prefer another one.
    """

    def __init__(
        self, needs: Sequence[Resource[Any]], build: Callable[[], Running], context: Context
    ) -> None:
        self._needs = needs
        self._build = build
        self._context = context

    async def run(self) -> None:
        while not await self._are_served():
            await self._context.clock.sleep(REFRESH_SECONDS)
        await self._build().run()

    async def _are_served(self) -> bool:
        try:
            return {*map(_kind_key, self._needs)} <= await self._served_resources()
        except (ApiError, NoAnswer) as error:
            LOG.warning("requesting %s from the server: %s", ", ".join(map(str, self._needs)), error)
            return False

    async def _served_resources(self) -> set[tuple[str, str]]:
        """The version and plural of each resource in the versions that are needed."""
        versions = sorted({need.api_version for need in self._needs})
        return {(version, plural) for version in versions for plural in await self._plurals(version)}

    async def _plurals(self, api_version: str) -> list[str]:
        try:
            document = await self._context.client.raw("GET", f"/apis/{api_version}")
        except NotFound:
            return []
        return [resource["name"] for resource in document.get("resources") or ()]


def _kind_key(resource: Resource[Any]) -> tuple[str, str]:
    return resource.api_version, resource.plural
