"""The composition root: API server and controller manager in one event loop, with the flags that they have as two processes."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.apimachinery.status import ServiceUnavailable
from mockube.apiserver.audit.audit import STDOUT
from mockube.apiserver.config.command_line import Config as ServerConfig
from mockube.apiserver.registry.component_statuses import ComponentHealth, EmbeddedProbe
from mockube.apiserver.serve import RunningServer, notify_ready, serving
from mockube.client.kubeconfig import Access, KubeconfigError, access_of
from mockube.clusters.named_cluster import ClusterFolder
from mockube.component_base.clock import ClusterClock
from mockube.component_base.supervision import RestartBackoff, error_unless_cancelled, first_cause, start
from mockube.controller_manager.app import Manager, components
from mockube.controller_manager.config.settings import Config as ManagerConfig
from mockube.controller_manager.control.followed_server import UnusableFlags
from mockube.controller_manager.serve import serving_status
from mockube.embedded.background_loop import BackgroundContext
from mockube.embedded.control_plane import connect_client
from mockube.embedded.fork_problems import fork_problem
from mockube.embedded.plane import ForkableControlPlane, health_of, observation_of
from mockube.embedded.serving import EmbeddedServer
from mockube.processes.child_processes import FIRST_DELAY, MAX_DELAY, STABLE_SECONDS

from .forks import Outputs, ProcessForks

LOG: Final = logging.getLogger(__name__)
_MANAGER_LOG: Final = logging.getLogger("mockube.controller_manager.restarts")
"""What is logged by it is in the log of the manager."""


@asynccontextmanager
async def one_process(
    server_config: ServerConfig,
    manager_config: ManagerConfig,
    *,
    context: BackgroundContext[ForkableControlPlane],
    folder: ClusterFolder,
    outputs: Outputs,
) -> AsyncIterator[ForkableControlPlane]:
    """Run both programs within the block, which begins when the server is ready. It runs in the loop of the context."""
    clock, random = ClusterClock(), SystemRandom()
    has_roles = asyncio.Event()
    managers = _Managers(manager_config, clock, random)
    async with AsyncExitStack() as stack:
        running_server = await stack.enter_async_context(
            serving(
                server_config,
                clock=clock,
                random=random,
                once_ready=has_roles.set,
                is_embedded=True,
                component_probes=managers.probes(),
                read_controllers=managers.read_controllers,
            )
        )
        await has_roles.wait()  # without the roles, the first requests of the controllers would be forbidden
        server = _embedded_server(running_server, folder, access_of(manager_config.server))
        observation = observation_of(server, manager_config)
        await stack.enter_async_context(managers.running(server))
        client = await stack.enter_async_context(connect_client(server, server.controllers, clock))
        plane = ForkableControlPlane(
            clock=clock,
            server=server,
            faults=observation.injector,
            quiet_time=observation.quiet_time,
            controllers=client,
            fork_problem=fork_problem(server_config, manager_config, may_publish=True),
        )
        forks = ProcessForks(context, plane, folder, outputs, [*_not_copied(server_config)])
        stack.push_async_callback(forks.stop)
        control = running_server.server.control
        control.use_advance(plane.advance)
        if not plane.fork_problem:
            control.use_copy(forks.make)
        notify_ready(os.environ)
        yield plane
        LOG.info("Stopping: /readyz fails and requests in flight may finish; a second signal cancels them")
        running_server.server.context.lifecycle.begin_shutdown()
        await clock.real.sleep(server_config.serving.shutdown_delay_duration)


def _not_copied(config: ServerConfig) -> Iterator[str]:
    """Yield what these flags give to the process, and not to a fork of it."""
    if config.serving.http_port is not None:
        yield "The port without encryption: the fork has none"
    if config.auditing.audit_log_path == STDOUT:
        yield "The audit log: the fork writes none"


def _embedded_server(running: RunningServer, folder: ClusterFolder, controllers: Access) -> EmbeddedServer:
    credentials, url = running.credentials, running.url
    return EmbeddedServer(
        api_server=running.server,
        listener=running.listeners[0],
        kubeconfig=folder.admin_kubeconfig,
        authority=folder.pki / "ca.crt",
        authority_bytes=credentials.server_ca,
        write_kubeconfig=credentials.write_kubeconfig,
        admin=Access(server=url, authority=credentials.server_ca, token=credentials.admin_token),
        controllers=controllers,
    )


class _Managers:
    """The managers that run one after another: one that fails is followed by another, as with two processes."""

    def __init__(self, config: ManagerConfig, clock: ClusterClock, random: Random) -> None:
        self._config, self._clock, self._random = config, clock, random
        self._manager: Manager | None = None

    def probes(self) -> dict[str, EmbeddedProbe]:
        return dict.fromkeys(components(self._config), self._health)

    def _health(self) -> ComponentHealth:
        if self._manager is None:
            return ComponentHealth(is_good=False, message="it does not run")
        return health_of(self._manager)

    async def read_controllers(self) -> bytes:
        if self._manager is None:
            raise ServiceUnavailable("the controller manager has not started yet")
        return self._manager.status_sources.controllers()

    @asynccontextmanager
    async def running(self, server: EmbeddedServer) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = start("managers", self._run(server), group=group, endless=True)
            yield
            task.cancel()

    async def _run(self, server: EmbeddedServer) -> None:
        backoff = RestartBackoff(
            self._clock.real, first_delay=FIRST_DELAY, max_delay=MAX_DELAY, healthy_after=STABLE_SECONDS
        )
        while True:
            backoff.begin()
            error = await error_unless_cancelled(self._run_once(server))
            cause = first_cause(error)
            if isinstance(cause, (KubeconfigError, UnusableFlags)):  # it would end each manager
                raise cause from error
            delay = backoff.next_delay()
            _MANAGER_LOG.error("The manager failed, and is restarted in %g s", delay, exc_info=error)
            await self._clock.real.sleep(delay)

    async def _run_once(self, server: EmbeddedServer) -> None:
        self._manager = manager = Manager(
            self._config, clock=self._clock, random=self._random, transport=server.transport
        )
        try:
            async with serving_status(manager, self._config, self._clock, self._random):
                await manager.run()
        finally:
            self._manager = None
