"""What a manager does while it leads: informers, controllers, engines, events; begun and ended in the right order."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from apimachinery.chance import Chance
from apimachinery.clock import Clock
from controller_manager.config.command_line import Config
from controller_manager.runtime.client import Client
from controller_manager.runtime.controller import Controller
from controller_manager.runtime.engine import Context, Engine, Running
from controller_manager.runtime.events.recorder import EventWriter, Recorders
from controller_manager.runtime.informers import Informers
from controller_manager.runtime.informers import Settings as InformerSettings
from controller_manager.runtime.metrics import Metrics
from controller_manager.runtime.offered import WhenOffered
from controller_manager.runtime.planning import Planning
from controller_manager.runtime.together import all_of

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outfit:
    """What a manager works with."""

    client: Client
    clock: Clock
    chance: Chance
    metrics: Metrics
    config: Config
    informer_settings: InformerSettings


class Work:
    """Everything is built first, so that handlers and indexes are there when the informers begin.

    Only what needs kinds that not every server has is built when the server has them.
    """

    def __init__(
        self, outfit: Outfit, *, controllers: Iterable[Controller], engines: Iterable[Engine]
    ) -> None:
        self._outfit = outfit
        self.informers = Informers(outfit.client, outfit.informer_settings)
        self.events = EventWriter(outfit.clock, outfit.chance)
        self.running: dict[str, Running] = {
            controller.name: self._planning(controller) for controller in controllers
        }
        self.running |= {
            engine.name: engine.build(self._context(engine.service_account)) for engine in engines
        }

    async def run(self) -> None:
        """Until cancelled. Then all finish what they have in hand, while the informers still run and events are written."""
        async with asyncio.TaskGroup() as group:
            supports = [group.create_task(self.informers.run()), group.create_task(self.events.run())]
            try:
                await _together(self.running)
            finally:
                for support in supports:
                    support.cancel()

    def _planning(self, controller: Controller) -> Running:
        context = self._context(controller.service_account)
        build = partial(Planning, controller, context)
        return WhenOffered(controller.needs, build, context) if controller.needs else build()

    def _context(self, service_account: str) -> Context:
        outfit = self._outfit
        client = outfit.client.acting_as(service_account) if service_account else outfit.client
        return Context(
            client=client,
            informers=self.informers,
            clock=outfit.clock,
            chance=outfit.chance,
            recorder=Recorders(writer=self.events, client=client),
            metrics=outfit.metrics,
            options=outfit.config,
        )


async def _together(running: Mapping[str, Running]) -> None:
    """Until cancelled: all are cancelled, and waited for. One that fails ends the others, and its error is raised."""
    tasks = [asyncio.create_task(one.run(), name=name) for name, one in running.items()]
    try:
        await all_of(tasks)
    finally:
        for task in tasks:
            if not task.cancelled() and (error := task.exception()) is not None:
                LOG.error("%s failed", task.get_name(), exc_info=error)
