"""The composition root of the controller manager: client, leader election, informers, controllers and runnables."""

import gc
import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import randomness
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.client.cache.informer import InformerSettings
from mockube.client.clock_follower import ClockFollower
from mockube.client.connect import AGENT, ClientOptions, connect
from mockube.client.events.recorder import Recorders
from mockube.client.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from mockube.client.kubeconfig import Access, access_of, rate_of
from mockube.client.leaderelection.elector import (
    Elector,
    LeaderElectionConfig,
    LeaseLost,
    Timings,
    lead,
    run_without_lease,
)
from mockube.client.metrics.informers import InformerMetrics
from mockube.client.metrics.process import Metrics, report_leadership
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.resources import Key
from mockube.client.transport import HttpTransport
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse, Transport
from mockube.component_base.clock import Clock, ClusterClock
from mockube.component_base.component_urls import CONTROLLER_MANAGER, SCHEDULER
from mockube.component_base.process_metrics import count_build
from mockube.component_base.release_options import ignored_settings
from mockube.component_base.supervision import run_with, start
from mockube.component_base.version import version

from . import catalog
from .catalog import KUBE_CONTROLLER_MANAGER, PackControllers
from .command_line import release_problem
from .component_leaders import ComponentElection, ElectedComponent
from .components import KUBE_SCHEDULER
from .config.configz import configz
from .config.features import implemented_gates
from .config.selection import is_controller_enabled
from .config.settings import Config
from .control.cluster_identity import ClusterIdentity
from .control.controller import Controller
from .control.followed_server import (
    ServerObserver,
    ServerState,
    UnusableFlags,
    config_for,
    read_server,
    report,
)
from .control.runnable import Runnable
from .controllers_page import controllers_page
from .http_endpoints import Check, StatusSources
from .running import Dependencies, ManagerRun

LOG = logging.getLogger(__name__)

SERVER_RETRY_SECONDS = 1.0
OWN_LEASE: Final = "mockube-controller-manager"
"""The lease of the process where static pods hold those of the programs that it stands for."""


class Manager:
    def __init__(
        self,
        config: Config,
        *,
        clock: Clock,
        random: Random,
        follows: ClusterClock | None = None,
        access: Access | None = None,
        transport: Callable[[Access], Transport] = HttpTransport,
    ) -> None:
        """Create a manager. `access` overrides the kubeconfig's server and credentials; `transport` connects to it.

        `follows` is the clock that follows the server's: that of a process of its own.
        """
        self._config = config
        """The flags, as they are: what they leave open follows the server."""
        self._server = ServerState(version="", minor=config.features.minor)
        """The latest known state of the server."""
        self._clock = clock
        self._following_clock = follows
        self._random = random
        self._access = access or access_of(config.server)
        self._transport = transport
        self._metrics = Metrics(clock.real)
        count_build(self._metrics.registry, f"v{version(config.features.minor)}")
        self._client_metrics = ClientMetrics(self._metrics.registry)
        self._informer_metrics = InformerMetrics(self._metrics.registry)
        self._checks: dict[str, Check] = {"ping": _no_problem}
        self.status_sources = StatusSources(
            checks=self._checks,
            registry=self._metrics.registry,
            settings=configz(config),
            controllers=partial(controllers_page, self._metrics),
        )

    def fail(self, name: str, error: Exception) -> None:
        """Let the health check of this name fail until the process ends."""
        problem = f"{type(error).__name__}: {error}"
        self._checks[name] = lambda: problem

    async def run(self) -> None:
        """Wait for the server and the lease, then run until cancelled. After the loss of the lease, wait for it again."""
        async with connect(self._client_options()) as client:
            await self._wait_for_server(client)
            if self._following_clock is None:
                await self._run_forever(client)
            else:
                await self._run_and_follow(client, self._following_clock)

    async def _run_forever(self, client: Client) -> None:
        if self._config.leading.leader_elect:
            await self._lead(client, self._elector(client))
        else:
            await self._run_without_election(client)

    async def _run_and_follow(self, client: Client, clock: ClusterClock) -> None:
        """Run in the time of the server, over a connection that does not wait by the clock of the cluster."""
        options = replace(
            self._client_options(), clock=clock.real, rate=None, use_service_account_credentials=False
        )
        async with connect(options) as clock_client:
            follower = ClockFollower(clock_client, clock)
            following = start("clock", follower.run(), endless=True)

            async def run_in_cluster_time() -> None:
                await follower.wait_known()
                await self._run_forever(client)

            await run_with(run_in_cluster_time(), background_tasks=[following])

    async def _wait_for_server(self, client: Client) -> None:
        is_reported = False
        while True:
            try:
                self._server = await read_server(client, with_packs=self._config.controllers.packs is None)
            except (NoResponse, ApiError) as error:
                if not is_reported:
                    LOG.warning("Waiting for the API server at %s: %s", self._access.server, error)
                is_reported = True
                await self._clock.real.sleep(SERVER_RETRY_SECONDS)
            else:
                LOG.info("API server: %s", self._access.server)
                report(self._config, self._server)
                return

    def _client_options(self, elector: Elector | None = None) -> ClientOptions:
        server = self._config.server
        return ClientOptions(
            access=self._access,
            clock=self._clock,
            rate=rate_of(server, self._access),
            use_service_account_credentials=server.use_service_account_credentials,
            may_write=elector.may_write if elector else None,
            wait_until_renewed=elector.wait_until_renewed if elector else None,
            metrics=self._client_metrics,
            transport=self._transport,
        )

    def _elector(self, client: Client) -> Elector:
        leading = self._config.leading
        candidate = LeaderElectionConfig(
            lease=Key(
                leading.leader_elect_resource_namespace,
                OWN_LEASE if is_installed(self._config) else leading.leader_elect_resource_name,
            ),
            identity=f"{socket.gethostname()}_{randomness.uid(self._random)}",
            timings=self._timings(),
            is_sole=leading.leader_elect_sole_candidate,
        )
        elector = Elector(candidate, client, clock=self._clock, random=self._random)
        report_leadership(candidate.lease.name, lambda: elector.is_leading, self._metrics.registry)
        self._checks["leaderElection"] = elector.problem
        return elector

    def _timings(self) -> Timings:
        leading = self._config.leading
        return Timings(
            lease_duration=leading.leader_elect_lease_duration,
            renew_deadline=leading.leader_elect_renew_deadline,
            retry_period=leading.leader_elect_retry_period,
        )

    def _component_election(self, client: Client, config: Config) -> ComponentElection:
        return ComponentElection(
            is_enabled=config.leading.leader_elect,
            timings=self._timings(),
            client=client,
            clock=self._clock,
            random=self._random,
            metrics=self._metrics.registry,
            shutdown_timeout=config.controllers.controller_shutdown_timeout,
        )

    async def _lead(self, client: Client, elector: Elector) -> None:
        shutdown_timeout = self._config.controllers.controller_shutdown_timeout
        while True:
            try:
                await lead(
                    elector,
                    lambda: self._run_as_leader(client, elector),
                    clock=self._clock.real,
                    shutdown_timeout=shutdown_timeout,
                    on_failure=self.fail,
                )
            except LeaseLost as error:
                LOG.error("leaderelection lost: %s. All work was cancelled until it is acquired again", error)  # noqa: TRY400 - it is no fault
            _free_ended_run()

    async def _run_without_election(self, client: Client) -> None:
        shutdown_timeout = self._config.controllers.controller_shutdown_timeout
        while True:
            await run_without_lease(
                lambda: self._run_as_leader(client, None),
                clock=self._clock.real,
                shutdown_timeout=shutdown_timeout,
            )
            _free_ended_run()

    async def _run_as_leader(self, client: Client, elector: Elector | None) -> None:
        """Run controllers and runnables with connections of their own, which refuse writes after the loss of the lease.

        Returns when the server holds another cluster than at the beginning, or has changed in what this manager follows.
        """
        config = self._config_for_server()
        packs = catalog.controllers_of_packs(config.controllers.packs or (), config.packs)
        async with connect(self._client_options(elector)) as leader_client:
            manager_run = ManagerRun(
                self._dependencies(leader_client, config),
                controllers=_controllers(config, packs),
                runnables=_runnables(config, packs),
                components=elected_components(config),
                election=self._component_election(client, config),
            )
            namespaces = manager_run.informers.of(NAMESPACES)
            identity = ClusterIdentity(namespaces)
            observer = ServerObserver(leader_client, self._config, self._server, identity.restart)
            observer.observe(namespaces, manager_run.informers.of(CUSTOM_RESOURCE_DEFINITIONS))
            parts = [*manager_run.names, *manager_run.services]
            self._checks |= {name: partial(manager_run.problem, name) for name in parts}
            LOG.info("Controllers: %s", ", ".join(sorted(manager_run.names)) or "none")
            if elector is not None and elector.lease is not None:
                recorder = Recorders(
                    writer=manager_run.events, client=client, minor=config.features.minor
                ).of(AGENT)
                recorder.record(
                    elector.lease, "Normal", "LeaderElection", f"{elector.identity} became leader"
                )
            try:
                shutdown_timeout = config.controllers.controller_shutdown_timeout
                await identity.run_until_changed(
                    _run_and_observe(manager_run, observer),
                    clock=self._clock.real,
                    shutdown_timeout=shutdown_timeout,
                )
            finally:
                self._server = observer.known
                for name in parts:
                    # The check of a failed part fails until the process ends.
                    if name not in manager_run.failures:
                        del self._checks[name]

    def _config_for_server(self) -> Config:
        """Return the settings for the latest known state of the server; raise UnusableFlags if flags do not fit it."""
        config = config_for(self._config, self._server)
        minor, gates = config.features.minor, config.features.feature_gates
        if problem := release_problem(config):
            raise UnusableFlags(f"the API server has Kubernetes {minor}: {problem}")
        for setting in ignored_settings(gates, minor, implemented_gates(minor)):
            LOG.warning("--feature-gates=%s is not implemented and is ignored", setting)
        count_build(self._metrics.registry, f"v{version(minor)}")
        return config

    def _dependencies(self, client: Client, config: Config) -> Dependencies:
        settings = InformerSettings(
            clock=self._clock,
            random=self._random,
            metrics=self._informer_metrics,
            min_resync_period=self._config.controllers.min_resync_period,
            gates=config.features.gates,
        )
        return Dependencies(
            client=client,
            clock=self._clock,
            random=self._random,
            metrics=self._metrics,
            config=config,
            informer_settings=settings,
        )


async def _run_and_observe(manager_run: ManagerRun, observer: ServerObserver) -> None:
    observing = start("version of the server", observer.run(), endless=True)
    await run_with(manager_run.run(), background_tasks=[observing])


def _free_ended_run() -> None:
    """Free the caches of a run that has ended: they are part of cycles, and full collections are rare."""
    gc.collect()


def _no_problem() -> str:
    return ""


def _controllers(config: Config, packs: PackControllers) -> list[Controller]:
    own = [replace(controller, workers=_workers(controller, config)) for controller in catalog.CONTROLLERS]
    return [controller for controller in (*own, *packs.controllers) if _is_enabled(controller.name, config)]


def _runnables(config: Config, packs: PackControllers) -> list[Runnable]:
    return [
        runnable for runnable in (*catalog.RUNNABLES, *packs.runnables) if _is_enabled(runnable.name, config)
    ]


def _is_enabled(name: str, config: Config) -> bool:
    by_default = catalog.runs_by_default(
        name, simulates=config.simulation.node_count > 0, is_installed=is_installed(config)
    )
    return is_controller_enabled(name, config.controllers.controllers, by_default=by_default)


def is_installed(config: Config) -> bool:
    """Return whether kubeadm has made the cluster, so that static pods stand for the programs of the control plane."""
    return config.simulation.installation.control_planes > 0


def elected_components(config: Config) -> Sequence[ElectedComponent]:
    """Return the programs whose static pods decide whether their parts work."""
    if not is_installed(config):
        return ()
    leading = config.leading
    leases = {
        KUBE_SCHEDULER.name: KUBE_SCHEDULER.name,
        KUBE_CONTROLLER_MANAGER: leading.leader_elect_resource_name,
    }
    return [
        ElectedComponent(
            program=program,
            lease=Key(leading.leader_elect_resource_namespace, lease),
            releases=program != KUBE_CONTROLLER_MANAGER,
            parts=catalog.parts_of_program(program),
            nodes=[*config.simulation.installation.files],
        )
        for program, lease in leases.items()
    ]


def components(config: Config) -> Sequence[str]:
    """Return the components of ComponentStatuses that a manager contains."""
    return (
        (CONTROLLER_MANAGER, SCHEDULER) if _is_enabled(KUBE_SCHEDULER.name, config) else (CONTROLLER_MANAGER,)
    )


def _workers(controller: Controller, config: Config) -> int:
    flag = catalog.WORKERS.get(controller.name)
    return controller.workers if flag is None else getattr(config.controllers, flag)
