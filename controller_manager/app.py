"""The one place that wires the controller manager together: client → leader → informers, controllers, engines."""

import logging
import socket
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace
from prometheus_client import ProcessCollector

from mockube.apimachinery import randomness
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.controller_manager import catalog
from mockube.controller_manager.cache.informer import Settings as InformerSettings
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.connect import AGENT, Connection, connect
from mockube.controller_manager.client.kinds import NAMESPACES
from mockube.controller_manager.client.kubeconfig import Access, access_of, rate_of
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.transport import HttpTransport
from mockube.controller_manager.client.wire import NoAnswer, Transport
from mockube.controller_manager.config.configz import configz
from mockube.controller_manager.config.selection import is_wanted
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.control.cluster_identity import ClusterIdentity
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.control.events.recorder import Recorders
from mockube.controller_manager.control.runnable import Runnable
from mockube.controller_manager.http_endpoints import Check, StatusSources
from mockube.controller_manager.leaderelection.elector import (
    Candidate,
    Elector,
    LeaseLost,
    Timings,
    lead,
    run_without_lease,
)
from mockube.controller_manager.metrics.client import ClientMetrics, InformerMetrics
from mockube.controller_manager.metrics.controllers import LeaderMetrics, Metrics
from mockube.controller_manager.running import Dependencies, ManagerRun

LOG = logging.getLogger(__name__)

WAITING_SECONDS = 1.0


class Manager:
    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        random: Random,
        access: Access | None = None,
        transport: Callable[[Access], Transport] = HttpTransport,
    ) -> None:
        """`access` replaces the kubeconfig's server and credentials; `transport` makes the connection."""
        self._config = config
        self._clock = clock
        self._random = random
        self._access = access or access_of(config.server)
        self._transport = transport
        self._metrics = Metrics(clock)
        self._client_metrics = ClientMetrics()
        self._informer_metrics = InformerMetrics()
        self._checks: dict[str, Check] = {"ping": _no_problem}
        self.status_sources = StatusSources(
            checks=self._checks, registry=self._metrics.registry, settings=configz(config)
        )
        for collector in (self._client_metrics, self._informer_metrics):
            self._metrics.registry.register(collector)
        ProcessCollector(registry=self._metrics.registry)

    def fail(self, name: str, error: Exception) -> None:
        """Let the health check of this name fail until the process has ended."""
        problem = f"{type(error).__name__}: {error}"
        self._checks[name] = lambda: problem

    async def run(self) -> None:
        """Wait for the server and the lease, then run until cancelled. A manager that loses the lease waits for it again."""
        async with connect(self._connection()) as client:
            await self._wait_for_server(client)
            if self._config.leading.leader_elect:
                await self._lead(client, self._elector(client))
            else:
                await self._work_alone(client)

    async def _wait_for_server(self, client: Client) -> None:
        is_reported = False
        while True:
            try:
                await client.raw("GET", "/version")
            except (NoAnswer, ApiError) as error:
                if not is_reported:
                    LOG.warning("Waiting for the API server at %s: %s", self._access.server, error)
                is_reported = True
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
            identity=f"{socket.gethostname()}_{randomness.uid(self._random)}",
            timings=Timings(
                lease_duration=leading.leader_elect_lease_duration,
                renew_deadline=leading.leader_elect_renew_deadline,
                retry_period=leading.leader_elect_retry_period,
            ),
        )
        elector = Elector(candidate, client, clock=self._clock, random=self._random)
        self._metrics.registry.register(LeaderMetrics(candidate.lease.name, lambda: elector.is_leading))
        self._checks["leaderElection"] = elector.problem
        return elector

    async def _lead(self, client: Client, elector: Elector) -> None:
        shutdown_timeout = self._config.controllers.controller_shutdown_timeout
        while True:
            try:
                await lead(
                    elector,
                    lambda: self._work(client, elector),
                    clock=self._clock,
                    shutdown_timeout=shutdown_timeout,
                    on_failure=self.fail,
                )
            except LeaseLost as error:
                LOG.error("leaderelection lost: %s. All work was cancelled until it is acquired again", error)  # noqa: TRY400 - it is no fault

    async def _work_alone(self, client: Client) -> None:
        shutdown_timeout = self._config.controllers.controller_shutdown_timeout
        while True:
            await run_without_lease(
                lambda: self._work(client, None), clock=self._clock, shutdown_timeout=shutdown_timeout
            )

    async def _work(self, client: Client, elector: Elector | None) -> None:
        """Run the work of the leader with connections of its own, over which nothing is written after the lease is
        lost.

        Returns when the server holds another cluster than at the beginning.
        """
        async with connect(self._connection(elector.may_write if elector else None)) as worker:
            config = self._config
            work = ManagerRun(
                self._dependencies(worker), controllers=_controllers(config), runnables=_runnables(config)
            )
            identity = ClusterIdentity(work.informers.of(NAMESPACES))
            parts = [*work.running, *work.supports]
            self._checks |= {name: partial(work.problem, name) for name in parts}
            LOG.info("Controllers: %s", ", ".join(sorted(work.running)) or "none")
            if elector is not None and elector.lease is not None:
                recorder = Recorders(writer=work.events, client=client).of(AGENT)
                recorder.record(
                    elector.lease, "Normal", "LeaderElection", f"{elector.identity} became leader"
                )
            self._metrics.registry.register(work.events)
            try:
                shutdown_timeout = config.controllers.controller_shutdown_timeout
                await identity.run_until_changed(
                    work.run(), clock=self._clock, shutdown_timeout=shutdown_timeout
                )
            finally:
                self._metrics.registry.unregister(work.events)
                for name in parts:
                    if name not in work.failures:  # such a check fails until the process has ended
                        del self._checks[name]

    def _dependencies(self, client: Client) -> Dependencies:
        settings = InformerSettings(
            clock=self._clock,
            random=self._random,
            metrics=self._informer_metrics,
            min_resync_period=self._config.controllers.min_resync_period,
        )
        return Dependencies(
            client=client,
            clock=self._clock,
            random=self._random,
            metrics=self._metrics,
            config=self._config,
            informer_settings=settings,
        )


def _no_problem() -> str:
    return ""


def _controllers(config: Config) -> list[Controller]:
    return [
        replace(controller, workers=_workers(controller, config))
        for controller in catalog.CONTROLLERS
        if _is_wanted(controller.name, config)
    ]


def _runnables(config: Config) -> list[Runnable]:
    return [runnable for runnable in catalog.RUNNABLES if _is_wanted(runnable.name, config)]


def _is_wanted(name: str, config: Config) -> bool:
    by_default = catalog.runs_by_default(name, simulates=config.simulation.simulate_nodes > 0)
    return is_wanted(name, config.controllers.controllers, by_default=by_default)


def _workers(controller: Controller, config: Config) -> int:
    flag = catalog.WORKERS.get(controller.name)
    return controller.workers if flag is None else getattr(config.controllers, flag)
