"""A server while it runs: the store is opened, the first objects are made, doors are open, and all ends in order.

Knows neither signals nor what a process tells of itself: `serve` gives it a process, a test may give it a thread.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_network

from apimachinery import chance as chances
from apimachinery.chance import Chance
from apimachinery.clock import Clock
from apimachinery.timestamps import format_time
from apiserver.app import ApiServer
from apiserver.bootstrap.cluster import Facts, cluster
from apiserver.bootstrap.definitions import packed_definitions
from apiserver.bootstrap.ensure import ensure
from apiserver.bootstrap.identity import keep_alive, server_name
from apiserver.config.command_line import Config
from apiserver.config.feature_gates import is_on
from apiserver.credentials import Credentials
from apiserver.http.around import Around
from apiserver.http.budget import Budget
from apiserver.http.listen import Door, listening
from apiserver.settings import Settings
from apiserver.storage.compaction import Compactor
from apiserver.store import opened

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a server is put into."""

    doors: Sequence[Door]
    """The one for HTTPS first."""
    credentials: Credentials
    address: str = ""
    """Where pods find the server; "" if nothing is known."""
    clock: Clock
    chance: Chance
    drain_seconds: float
    """How long those are waited for at the end who are owed an answer."""
    through: Around | None = None
    """What every request is put through; nothing if it is not given."""

    @property
    def port(self) -> int:
        return self.doors[0].port


@asynccontextmanager
async def running(config: Config, surroundings: Surroundings) -> AsyncIterator[ApiServer]:
    """From when clients are let in, until all who came in time have had their answer."""
    credentials, clock = surroundings.credentials, surroundings.clock
    async with AsyncExitStack() as stack:
        kv = await stack.enter_async_context(opened(config.store, clock))
        status = await kv.status()
        LOG.info("Store: %s %s at revision %d", status.backend, status.version, status.revision)
        server = ApiServer(
            kv,
            trust=credentials.trust,
            settings=_settings(config, surroundings),
            clock=clock,
            chance=surroundings.chance,
        )
        await stack.enter_async_context(server)
        wanted = (
            *cluster(_facts(config, surroundings), server.catalog.groups),
            *packed_definitions(config.features.packs),
        )

        async def furnish() -> None:
            made = await ensure(server.backend, server.resources.__getitem__, wanted)
            LOG.info("Objects of the system: %d made", made)

        await furnish()
        server.on_restored.append(furnish)
        await stack.enter_async_context(_meanwhile(*_chores(config, server, surroundings.port)))
        door = listening(
            server.handler.server,
            surroundings.doors,
            clock=clock,
            drain_seconds=surroundings.drain_seconds,
            before_drain=server.handler.watching.end_all,
        )
        await stack.enter_async_context(door)
        yield server


def _chores(config: Config, server: ApiServer, port: int) -> Sequence[Coroutine[None, None, None]]:
    """What goes on as long as the server runs."""
    backend, host = server.backend, socket.gethostname()
    name = server_name(host, port)
    chores = [
        Compactor(backend.kv, clock=backend.clock, interval=config.store.etcd_compaction_interval).run(),
        keep_alive(
            backend,
            server.resources.__getitem__,
            host=host,
            name=name,
            holder=f"{name}_{chances.uid(backend.chance)}",
            clock=backend.clock,
        ),
    ]
    if is_on("DetectCacheInconsistency", config.features.feature_gates):
        chores.append(server.self_check.run())
    return chores


@asynccontextmanager
async def _meanwhile(*work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Work that ends with the block; if some of it fails, so does the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
        yield
        for task in tasks:
            task.cancel()


def _settings(config: Config, surroundings: Surroundings) -> Settings:
    serving, services = config.serving, config.services
    return Settings(
        prefix=config.store.etcd_prefix,
        address=f"{surroundings.address or serving.bind_address}:{surroundings.port}",
        service_cluster_ip_ranges=(ip_network(services.service_cluster_ip_range),),
        service_node_ports=services.service_node_port_range,
        budget=Budget(
            reads=serving.max_requests_inflight,
            writes=serving.max_mutating_requests_inflight,
            seconds=serving.request_timeout,
        ),
        event_ttl=config.store.event_ttl,
        disabled_plugins=config.admission.disable_admission_plugins,
        allow_privileged=config.admission.allow_privileged,
        packs=config.features.packs,
        watch_list=is_on("WatchList", config.features.feature_gates),
        audit_log=config.auditing.audit_log_path,
        audit_policy=config.auditing.audit_policy_file,
        around=surroundings.through,
    )


def _facts(config: Config, surroundings: Surroundings) -> Facts:
    return Facts(
        address=surroundings.address,
        port=surroundings.port,
        service_range=config.services.service_cluster_ip_range,
        client_ca=surroundings.credentials.client_ca,
        now=format_time(surroundings.clock.now()),
    )
