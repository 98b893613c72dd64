"""What a manager does while it leads: informers, controllers, engines, events; begun and ended in the right order."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.controller_manager.cache.informer import Informers
from mockube.controller_manager.cache.informer import Settings as InformerSettings
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.control.events.recorder import EventWriter, Recorders
from mockube.controller_manager.control.runnable import Context, Runnable, Running, WaitForKinds
from mockube.controller_manager.control.runner import ControllerRunner
from mockube.controller_manager.metrics.controllers import Metrics
from mockube.controller_manager.supervision import (
    all_of,
    cancel_and_wait,
    first_failure,
    start,
    yield_to_loop,
)


class Dependencies(Struct, frozen=True, kw_only=True):
    """What a manager works with."""

    client: Client
    clock: Clock
    random: Random
    metrics: Metrics
    config: Config
    informer_settings: InformerSettings


class ManagerRun:
    """Everything is built first, so that handlers and indexes are there when the informers begin.

    Only what needs kinds that not every server has is built when the server has them.
    """

    def __init__(
        self, dependencies: Dependencies, *, controllers: Iterable[Controller], runnables: Iterable[Runnable]
    ) -> None:
        self._dependencies = dependencies
        controllers, runnables = [*controllers], [*runnables]
        self._names = frozenset(
            [*(controller.name for controller in controllers), *(runnable.name for runnable in runnables)]
        )
        self.informers = Informers(dependencies.client, dependencies.informer_settings)
        self.events = EventWriter(dependencies.clock, dependencies.random)
        self.supports = {"informers": self.informers.run, "events": self.events.run}
        """What runs as long as anything else does."""
        self._shared: dict[type, Any] = {}
        self.failures: dict[str, str] = {}
        """The failure of each part: the manager ends then."""
        self.running: dict[str, Running] = {
            controller.name: self._controller_runner(controller) for controller in controllers
        }
        self.running |= {
            runnable.name: runnable.build(self._context(runnable.service_account)) for runnable in runnables
        }

    async def run(self) -> None:
        """Run until cancelled, or until a part fails, whose error is raised.

        Reconciliations in progress finish while the informers still run and events are written. When one of those two
        has failed, they are cancelled, because they may wait for a cache that no longer advances.
        """
        async with AsyncExitStack() as stack:
            supports = [
                start(name, run(), on_failure=self._fail, endless=True) for name, run in self.supports.items()
            ]
            stack.push_async_callback(cancel_and_wait, supports)
            running = start("running", self._run_all(), endless=True)
            stack.push_async_callback(cancel_and_wait, [running])
            try:
                await first_failure([running, *supports])
            except Exception:
                while not running.done():
                    running.cancel()
                    await yield_to_loop()
                raise

    def problem(self, name: str) -> str:
        """The failure of a part, or "" if there is none."""
        return self.failures.get(name, "")

    async def _run_all(self) -> None:
        """Until cancelled: all are cancelled, and waited for. One that fails ends the others, and its error is raised."""
        await all_of(
            [
                start(name, runner.run(), on_failure=self._fail, endless=True)
                for name, runner in self.running.items()
            ]
        )

    def _fail(self, name: str, error: Exception) -> None:
        self.failures[name] = f"{type(error).__name__}: {error}"

    def _controller_runner(self, controller: Controller) -> Running:
        context = self._context(controller.service_account)
        build = partial(ControllerRunner, controller, context)
        return WaitForKinds(controller.needs, build, context) if controller.needs else build()

    def _context(self, service_account: str) -> Context:
        dependencies = self._dependencies
        client = (
            dependencies.client.for_service_account(service_account)
            if service_account
            else dependencies.client
        )
        return Context(
            client=client,
            informers=self.informers,
            clock=dependencies.clock,
            random=dependencies.random,
            recorder=Recorders(writer=self.events, client=client),
            metrics=dependencies.metrics,
            options=dependencies.config,
            names=self._names,
            shared=self._shared,
        )
