"""One server's life: the store is opened, the first objects are made, doors open, and at a signal all ends in order."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_address, ip_network

from apimachinery import chance
from apimachinery.chance import SystemChance
from apimachinery.clock import Clock, RealClock
from apimachinery.timestamps import format_time
from apiserver import kubeconfig
from apiserver.app import ApiServer
from apiserver.bootstrap.cluster import Facts, cluster
from apiserver.bootstrap.definitions import packed_definitions
from apiserver.bootstrap.ensure import ensure
from apiserver.bootstrap.identity import keep_alive, server_name
from apiserver.config.command_line import Config
from apiserver.config.feature_gates import is_on
from apiserver.config.settings import Serving
from apiserver.credentials import Credentials, gather
from apiserver.http.budget import Budget
from apiserver.http.listen import Door, bind, listening
from apiserver.settings import Settings
from apiserver.storage.compaction import Compactor
from apiserver.store import opened

LOG = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
ELSEWHERE = ("192.0.2.1", 9)
"""An address of no machine: only to learn by which of its own addresses this one would go there."""


async def serve(config: Config, *, once_ready: Callable[[], None]) -> None:
    """Serve until a signal says stop."""
    clock, luck = RealClock(), SystemChance()
    stopping = _signalled()
    serving, address = config.serving, _advertised(config.serving)
    credentials = gather(config, address, now=clock.now(), chance=luck)
    async with AsyncExitStack() as stack:
        doors = _bind(serving, credentials)
        kv = await stack.enter_async_context(opened(config.store, clock))
        status = await kv.status()
        LOG.info("Store: %s %s at revision %d", status.backend, status.version, status.revision)
        server = ApiServer(
            kv,
            trust=credentials.trust,
            settings=_settings(config, f"{address or serving.bind_address}:{doors[0].port}"),
            clock=clock,
            chance=luck,
        )
        await stack.enter_async_context(server)
        facts = _facts(config, credentials, address, doors[0].port, clock)
        wanted = (*cluster(facts, server.catalog.groups), *packed_definitions(config.features.packs))
        made = await ensure(server.backend, server.resources.__getitem__, wanted)
        LOG.info("Objects of the system: %d made", made)
        await stack.enter_async_context(_meanwhile(*_chores(config, server, doors[0].port)))
        door = listening(
            server.handler.server,
            doors,
            clock=clock,
            drain_seconds=serving.request_timeout,
            before_drain=server.handler.watching.end_all,
        )
        await stack.enter_async_context(door)
        _announce(serving, doors, credentials)
        once_ready()
        await stopping.wait()
        LOG.info("Stopping: /readyz says so, requests end, a second signal ends them at once")
        server.stopping = True
        await clock.sleep(serving.shutdown_delay_duration)
    LOG.info("Stopped")


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
            holder=f"{name}_{chance.uid(backend.chance)}",
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


def _signalled() -> asyncio.Event:
    """Set by the first signal to stop; the second one ends the process as if nobody handled it."""
    stopping = asyncio.Event()
    loop, signals = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopping.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stop)
    return stopping


def _bind(serving: Serving, credentials: Credentials) -> list[Door]:
    """The port for HTTPS first."""
    doors = [Door(socket=bind(serving.bind_address, serving.secure_port), tls=credentials.tls)]
    if serving.http_port is not None:
        doors.append(Door(socket=bind(LOOPBACK, serving.http_port)))
    return doors


def _advertised(serving: Serving) -> str:
    """Where others find this machine: never at an address that means their own; "" if nothing is known."""
    bound = ip_address(serving.bind_address)
    if serving.advertise_address:
        return serving.advertise_address
    if not (bound.is_unspecified or bound.is_loopback):
        return serving.bind_address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(ELSEWHERE)
        except OSError as error:
            LOG.warning(
                "This machine has no address that others could use: give --advertise-address: %s", error
            )
            return ""
        found: str = probe.getsockname()[0]
    return found


def _settings(config: Config, address: str) -> Settings:
    serving, services = config.serving, config.services
    return Settings(
        prefix=config.store.etcd_prefix,
        address=address,
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
    )


def _facts(config: Config, credentials: Credentials, address: str, port: int, clock: Clock) -> Facts:
    return Facts(
        address=address,
        port=port,
        service_range=config.services.service_cluster_ip_range,
        client_ca=credentials.client_ca,
        now=format_time(clock.now()),
    )


def _announce(serving: Serving, doors: list[Door], credentials: Credentials) -> None:
    bound = ip_address(serving.bind_address)
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(serving.bind_address, serving.bind_address)  # noqa: S104 - it is compared, not bound
    url = f"https://{f'[{host}]' if bound.version == 6 else host}:{doors[0].port}"
    path = serving.write_kubeconfig
    if path is not None:
        kubeconfig.write(
            path,
            server=url,
            authority=credentials.server_ca,
            client=credentials.admin,
            token=credentials.admin_token,
        )
        LOG.info("Kubeconfig: %s", path)
    for door in doors[1:]:
        LOG.warning(
            "Serving without encryption on http://%s:%d: anybody on this machine can listen",
            LOOPBACK,
            door.port,
        )
    LOG.info("Serving securely on %s", url)
