"""Runnables: the parts of the manager that call the server before they can decide, or that do not reconcile keys.

`running` builds each with a context that has the credentials of its own service account, and runs it while the process
leads. A part that reconciles keys by a pure function is a `Controller` instead. A part whose resources are not served yet
waits for them: custom resources may be defined at any time.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.status import ApiError, NotFound
from mockube.client.component import ComponentContext, Runner
from mockube.client.resources import Resource
from mockube.client.wire import NoResponse
from mockube.controller_manager.config.settings import Config

LOG: Final = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 30.0
"""The interval at which missing resources are looked up."""


class Context(ComponentContext, frozen=True, kw_only=True):
    """The dependencies of a controller or a runnable of a manager."""

    options: Config
    names: frozenset[str]
    """The names of all controllers and runnables of this manager."""


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
            await self._context.clock.routine.sleep(REFRESH_SECONDS)
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
