"""Runnables: the parts of the manager that call the server before they can decide, or that do not reconcile keys.

`running` builds each with a context that has the credentials of its own service account, and runs it while the process
leads. A part that reconciles keys by a pure function is a `Controller` instead. A part whose resources are not served yet
waits for them: custom resources may be defined at any time.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, field

from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError, NotFound
from mockube.component_base.clock import Clock
from mockube.controller_manager.cache.informer import Informers
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.resources import Resource
from mockube.controller_manager.client.wire import NoResponse
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.metrics.controllers import Metrics

from .events.recorder import Recorders

LOG: Final = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 30.0
"""The interval at which missing resources are looked up."""
_DAY_SECONDS: Final = 86400.0


class Context(Struct, frozen=True, kw_only=True):
    """The dependencies of a controller or a runnable."""

    client: Client
    """The client with the credentials of its service account."""
    informers: Informers
    """The shared informers, which start after everything is built."""
    clock: Clock
    random: Random
    recorder: Recorders
    metrics: Metrics
    options: Config
    names: frozenset[str]
    """The names of all controllers and runnables of this manager."""
    shared: dict[type, Any] = field(default_factory=dict)
    """Values that several runnables share, by type; the first runnable that needs one creates it."""


class Runner(Protocol):
    """A part of the manager that runs until cancelled, and finishes its current work before it returns."""

    async def run(self) -> None: ...


class IdleRunner:
    """The runner of a part that flags disable: it does nothing until cancelled."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self._clock.sleep(_DAY_SECONDS)


class Runnable(Struct, frozen=True, kw_only=True):
    """A part of the manager that does not reconcile keys by a pure function."""

    name: str
    """The name in `--controllers`, such as `garbage-collector-controller`."""
    service_account: str
    """Its service account in kube-system; empty for a part that uses the credentials of the process."""
    build: Callable[[Context], Runner]
    """Creates the runner before the informers start: it adds handlers and indexes, and reads nothing."""


class WaitForKinds:
    """A runner that builds and runs another one when its resources are served. Informers retry resources that disappear.

    Discovery requests exactly the needed versions: a server may prefer others.
    """

    def __init__(self, needs: Sequence[Resource[Any]], build: Callable[[], Runner], context: Context) -> None:
        self._needs = needs
        self._build = build
        self._context = context

    async def run(self) -> None:
        while not await self._are_served():
            await self._context.clock.sleep(REFRESH_SECONDS)
        await self._build().run()

    async def _are_served(self) -> bool:
        try:
            return {*map(_version_and_plural, self._needs)} <= await self._served_resources()
        except (ApiError, NoResponse) as error:
            LOG.warning("Discovering %s failed: %s", ", ".join(map(str, self._needs)), error)
            return False

    async def _served_resources(self) -> set[tuple[str, str]]:
        """Return the API version and the plural of each served resource in the needed versions."""
        versions = sorted({need.api_version for need in self._needs})
        return {(version, plural) for version in versions for plural in await self._plurals(version)}

    async def _plurals(self, api_version: str) -> list[str]:
        try:
            document = await self._context.client.raw("GET", f"/apis/{api_version}")
        except NotFound:
            return []
        return [resource["name"] for resource in document.get("resources") or ()]


def _version_and_plural(resource: Resource[Any]) -> tuple[str, str]:
    return resource.api_version, resource.plural
