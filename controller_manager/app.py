"""The one place that wires the controller manager together: client → leader → informers, controllers, engines."""

import logging
import socket
from collections.abc import Callable
from dataclasses import replace

from prometheus_client import ProcessCollector

from apimachinery import chance
from apimachinery.chance import Chance
from apimachinery.clock import Clock
from apimachinery.status import ApiError
from controller_manager import catalog
from controller_manager.config.access import access_of, rate_of
from controller_manager.config.command_line import Config
from controller_manager.config.selection import is_wanted
from controller_manager.config.shown import configz
from controller_manager.runtime.client import Client
from controller_manager.runtime.client_metrics import ClientMetrics
from controller_manager.runtime.connect import AGENT, Connection, connected
from controller_manager.runtime.controller import Controller
from controller_manager.runtime.engine import Engine
from controller_manager.runtime.events.recorder import Recorders
from controller_manager.runtime.informer_metrics import InformerMetrics
from controller_manager.runtime.informers import Settings as InformerSettings
from controller_manager.runtime.kubeconfig import Access
from controller_manager.runtime.leader import Candidate, Elector, LeaseLost, Timings
from controller_manager.runtime.leading import lead, work_alone
from controller_manager.runtime.metrics import LeaderMetrics, Metrics
from controller_manager.runtime.resource import Key
from controller_manager.runtime.serving import Check, Told
from controller_manager.runtime.transport import AiohttpTransport
from controller_manager.runtime.wire import NoAnswer, Transport
from controller_manager.work import Outfit, Work

LOG = logging.getLogger(__name__)

WAITING_SECONDS = 1.0


class Manager:
    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        chance: Chance,
        access: Access | None = None,
        transport: Callable[[Access], Transport] = AiohttpTransport,
    ) -> None:
        """`access` is as whom the server is asked, if not as the kubeconfig says, and `transport` the way there."""
        self._config = config
        self._clock = clock
        self._chance = chance
        self._access = access or access_of(config.server)
        self._transport = transport
        self._metrics = Metrics(clock)
        self._client_metrics = ClientMetrics()
        self._informer_metrics = InformerMetrics()
        self._checks: dict[str, Check] = {"ping": _fine}
        self.told = Told(checks=self._checks, registry=self._metrics.registry, settings=configz(config))
        for collector in (self._client_metrics, self._informer_metrics):
            self._metrics.registry.register(collector)
        ProcessCollector(registry=self._metrics.registry)

    async def run(self) -> None:
        """Wait for the server, then for the lease, then work; until cancelled. Who loses the lease waits for it again."""
        async with connected(self._connection()) as client:
            await self._wait_for_server(client)
            if self._config.leading.leader_elect:
                await self._lead(client, self._elector(client))
            else:
                patience = self._config.controllers.controller_shutdown_timeout
                await work_alone(lambda: self._work(client, None), clock=self._clock, patience=patience)

    async def _wait_for_server(self, client: Client) -> None:
        told = False
        while True:
            try:
                await client.raw("GET", "/version")
            except (NoAnswer, ApiError) as error:
                if not told:
                    LOG.warning("Waiting for the API server at %s: %s", self._access.server, error)
                told = True
                await self._clock.sleep(WAITING_SECONDS)
            else:
                LOG.info("API server: %s", self._access.server)
                return

    def _connection(self, may_write: Callable[[], bool] | None = None) -> Connection:
        server = self._config.server
        return Connection(
            access=self._access,
            clock=self._clock,
            rate=rate_of(server, self._access),
            use_service_account_credentials=server.use_service_account_credentials,
            may_write=may_write,
            metrics=self._client_metrics,
            transport=self._transport,
        )

    def _elector(self, client: Client) -> Elector:
        leading = self._config.leading
        candidate = Candidate(
            lease=Key(leading.leader_elect_resource_namespace, leading.leader_elect_resource_name),
            identity=f"{socket.gethostname()}_{chance.uid(self._chance)}",
            timings=Timings(
                lease_duration=leading.leader_elect_lease_duration,
                renew_deadline=leading.leader_elect_renew_deadline,
                retry_period=leading.leader_elect_retry_period,
            ),
        )
        elector = Elector(candidate, client, clock=self._clock, chance=self._chance)
        self._metrics.registry.register(LeaderMetrics(candidate.lease.name, lambda: elector.is_leading))
        self._checks["leaderElection"] = _fine
        return elector

    async def _lead(self, client: Client, elector: Elector) -> None:
        patience = self._config.controllers.controller_shutdown_timeout
        while True:
            try:
                await lead(elector, lambda: self._work(client, elector), clock=self._clock, patience=patience)
            except LeaseLost as error:
                LOG.warning("%s: all work is cut off, and begins anew with the lease", error)

    async def _work(self, client: Client, elector: Elector | None) -> None:
        """With connections of its own, that nothing is written by once the lease is not held."""
        async with connected(self._connection(elector.may_write if elector else None)) as worker:
            config = self._config
            work = Work(self._outfit(worker), controllers=_controllers(config), engines=_engines(config))
            self._checks |= dict.fromkeys(work.running, _fine)
            LOG.info("Controllers: %s", ", ".join(sorted(work.running)) or "none")
            if elector is not None and elector.lease is not None:
                recorder = Recorders(writer=work.events, client=client).of(AGENT)
                recorder.say(elector.lease, "Normal", "LeaderElection", f"{elector.identity} became leader")
            self._metrics.registry.register(work.events)
            try:
                await work.run()
            finally:
                self._metrics.registry.unregister(work.events)
                for name in work.running:
                    del self._checks[name]

    def _outfit(self, client: Client) -> Outfit:
        settings = InformerSettings(
            clock=self._clock,
            chance=self._chance,
            metrics=self._informer_metrics,
            min_resync_period=self._config.controllers.min_resync_period,
        )
        return Outfit(
            client=client,
            clock=self._clock,
            chance=self._chance,
            metrics=self._metrics,
            config=self._config,
            informer_settings=settings,
        )


def _fine() -> str:
    return ""


def _controllers(config: Config) -> list[Controller]:
    return [
        replace(controller, workers=_workers(controller, config))
        for controller in catalog.CONTROLLERS
        if _is_wanted(controller.name, config)
    ]


def _engines(config: Config) -> list[Engine]:
    return [engine for engine in catalog.ENGINES if _is_wanted(engine.name, config)]


def _is_wanted(name: str, config: Config) -> bool:
    has_place = name not in catalog.WITH_SIMULATED_NODES or config.simulation.simulate_nodes > 0
    by_default = has_place and name not in catalog.OFF_BY_DEFAULT
    return is_wanted(name, config.controllers.controllers, by_default=by_default)


def _workers(controller: Controller, config: Config) -> int:
    flag = catalog.WORKERS.get(controller.name)
    return controller.workers if flag is None else getattr(config.controllers, flag)
