"""Run what a leader runs: informers, controllers, runnables and the event recorder, started and stopped in order."""

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from msgspec import Struct

from mockube.apimachinery.randomness import Random
from mockube.client.cache.informer import Informers, InformerSettings
from mockube.client.component import Runner
from mockube.client.events.recorder import EventWriter, Recorders
from mockube.client.metrics.process import Metrics
from mockube.client.service_accounts import create_missing_accounts
from mockube.client.verbs import Client
from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.kubelet.running_programs import running_programs

from .component_leaders import ComponentElection, ComponentRunner, ElectedComponent
from .config.settings import Config
from .control.controller import Controller
from .control.runnable import Context, Runnable, WaitForKinds
from .control.runner import ControllerRunner


class Dependencies(Struct, frozen=True, kw_only=True):
    """The dependencies that all controllers and runnables of a manager share."""

    client: Client
    clock: Clock
    random: Random
    metrics: Metrics
    config: Config
    informer_settings: InformerSettings


class ManagerRun:
    """One run of all controllers and runnables, from the acquisition of the lease until its end.

    All are built first, so that their handlers and indexes exist when the informers start. A controller of kinds that
    the server does not serve yet is built when it serves them.
    """

    def __init__(
        self,
        dependencies: Dependencies,
        *,
        controllers: Iterable[Controller],
        runnables: Iterable[Runnable],
        components: Iterable[ElectedComponent] = (),
        election: ComponentElection | None = None,
    ) -> None:
        """Build all parts. Those of `components` work while these lead by the `election` of static pods."""
        self._dependencies = dependencies
        controllers, runnables = [*controllers], [*runnables]
        self.names = frozenset(
            [*(controller.name for controller in controllers), *(runnable.name for runnable in runnables)]
        )
        self.informers = Informers(
            dependencies.client,
            dependencies.informer_settings,
            {need for controller in controllers for need in controller.needs},
        )
        self.events = EventWriter(dependencies.clock, dependencies.random, dependencies.metrics.registry)
        self.services = {"informers": self.informers.run, "events": self.events.run}
        """What controllers and runnables depend on: it is stopped after them."""
        self._shared: dict[type, Any] = {}
        self._accounts = {
            *(controller.service_account for controller in controllers),
            *(runnable.service_account for runnable in runnables),
        } - {""}
        self.failures: dict[str, str] = {}
        """The errors of failed parts, by name. A failure ends the manager."""
        self._builders: dict[str, Callable[[], Runner]] = {
            controller.name: partial(self._controller_runner, controller) for controller in controllers
        }
        self._builders |= {runnable.name: partial(self._build, runnable) for runnable in runnables}
        elected = {name for component in components for name in component.parts}
        self.runners = {name: build() for name, build in self._builders.items() if name not in elected}
        if election is not None:
            present = [component for component in components if component.parts & self.names]
            self.runners |= {each.program: self._component_runner(each, election) for each in present}

    async def run(self) -> None:
        """Run until cancelled, or until a part fails; raise its error.

        Informers and event recorder run until the reconciliations in progress have finished. If one of the two fails, the
        reconciliations are cancelled, because they may wait for a cache that no longer advances.
        """
        async with AsyncExitStack() as stack:
            services = [
                supervision.start(name, run(), on_failure=self._fail, endless=True)
                for name, run in self.services.items()
            ]
            stack.push_async_callback(supervision.cancel_and_wait, services)
            runners = supervision.start("running", self._run_all(), endless=True)
            accounts = supervision.start("service-accounts", self._create_accounts(), on_failure=self._fail)
            stack.push_async_callback(supervision.cancel_and_wait, [runners, accounts])
            try:
                await supervision.first_failure([runners, accounts, *services])
            except Exception:
                while not runners.done():
                    runners.cancel()
                    await yield_to_loop()
                raise

    def problem(self, name: str) -> str:
        """Return the error of a failed part; "" if it has not failed."""
        return self.failures.get(name, "")

    async def _run_all(self) -> None:
        """Run all runners until cancelled, or until one fails: then cancel and await the others, and raise its error."""
        await supervision.wait_for_all(
            [
                supervision.start(name, runner.run(), on_failure=self._fail, endless=True)
                for name, runner in self.runners.items()
            ]
        )

    async def _create_accounts(self) -> None:
        client = self._dependencies.client
        if client.needs_service_accounts:
            await create_missing_accounts(client, self._dependencies.clock, self._accounts)

    def _fail(self, name: str, error: Exception) -> None:
        self.failures[name] = f"{type(error).__name__}: {error}"

    def _component_runner(self, component: ElectedComponent, election: ComponentElection) -> ComponentRunner:
        parts = sorted(component.parts & self.names)
        context = self._context("")

        def build() -> dict[str, Runner]:
            return {name: self._builders[name]() for name in parts}

        return ComponentRunner(
            component,
            build,
            election,
            running_programs(context),
            context.recorder.of(component.program),
            self._fail,
        )

    def _build(self, runnable: Runnable) -> Runner:
        return runnable.build(self._context(runnable.service_account))

    def _controller_runner(self, controller: Controller) -> Runner:
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
            recorder=Recorders(
                writer=self.events,
                client=client,
                minor=dependencies.config.features.minor,
            ),
            metrics=dependencies.metrics,
            options=dependencies.config,
            names=self.names,
            shared=self._shared,
        )
