"""Start a controller once the server has the resources that it needs; custom resources may appear at any time.

Reads exactly the versions that are needed: a server may prefer another one.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from mockube.apimachinery.status import ApiError, NotFound
from mockube.controller_manager.client.resources import Resource
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.control.runnable import Context, Running

LOG: Final = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 30.0
"""Seconds between two reads."""


class WaitForKinds:
    """Builds and runs a runnable once its resources are served. Informers retry resources that disappear later."""

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
