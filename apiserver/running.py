"""The lifetime of a server: open the store, create the system objects, serve, and shut down in order.

It is independent of signals and of the process's output: `serve` runs it in a process, a test may run it in a thread.
"""

import logging
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from ipaddress import ip_address
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import randomness
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import Clock
from mockube.component_base.local_ports import LocalPorts

from .app import ApiServer
from .bootstrap.apiservices import API_SERVICES, delete_unserved
from .bootstrap.cluster import (
    ServerProperties,
    authentication_config_map,
    cluster_objects,
    packed_definitions,
)
from .bootstrap.endpoint_reconciler import EndpointReconciler
from .bootstrap.ensure import ensure, recreate_deleted
from .bootstrap.identity import keep_alive, server_name
from .bootstrap.manager_roles import (
    roles_of_control,
    roles_of_manager,
    roles_of_metrics,
    roles_of_single_user,
)
from .bootstrap.required_object import RequiredObject
from .bootstrap.trust_controller import TrustController
from .config.command_line import Config
from .config.settings import Serving
from .control.controllers import ReadControllers
from .http.server import Listener, listening
from .parts.environment import ServerEnvironment
from .registry.component_statuses import NO_PROBES, EmbeddedProbe
from .registry.registry import Registry
from .serving_credentials import Credentials
from .storage.compaction import Compactor, HistoryAge
from .store import open_store

LOG = logging.getLogger(__name__)

LOOPBACK: Final = "127.0.0.1"


class Dependencies(Struct, frozen=True, kw_only=True):
    """The dependencies of a server on its environment."""

    listeners: Sequence[Listener]
    """The first one is for HTTPS."""
    credentials: Credentials
    address: str = ""
    """The address at which pods reach the server; "" if it is not known."""
    clock: Clock
    random: Random
    drain_seconds: float
    """How long a shutdown waits for requests in flight."""
    has_embedded_manager: bool = False
    """Whether a controller manager runs in the same process, whose controllers share one user."""
    is_embedded: bool = False
    """Whether the program that runs the server controls it."""
    component_probes: Mapping[str, EmbeddedProbe] = NO_PROBES
    """The probes of that manager, by component."""
    read_controllers: ReadControllers | None = None
    """Reads the queues of that manager."""
    local_ports: LocalPorts = field(default_factory=dict)
    """The listeners of that manager."""

    port_in_objects: int = 0
    """The port that objects contain, such as names and Services; 0 for the listener's."""

    @property
    def port(self) -> int:
        return self.listeners[0].port

    @property
    def stored_port(self) -> int:
        return self.port_in_objects or self.port


@asynccontextmanager
async def running(config: Config, dependencies: Dependencies) -> AsyncIterator[ApiServer]:
    """Run a server within the block; at its end, drain the requests in flight."""
    clock = dependencies.clock
    async with AsyncExitStack() as stack:
        kv = await stack.enter_async_context(open_store(config.store, clock))
        status = await kv.status()
        LOG.info("Store: %s %s at revision %d", status.backend, status.version, status.revision)
        server = ApiServer(kv, _environment(config, dependencies), config)
        _add_roles(server, config, has_embedded_manager=dependencies.has_embedded_manager)
        await stack.enter_async_context(server)
        required_objects = (
            *cluster_objects(_server_properties(config, dependencies), server.catalog.groups),
            *packed_definitions(config.features.packs),
        )

        api_service_names = {each.name for each in required_objects if each.resource == API_SERVICES}

        async def ensure_system_objects() -> None:
            await delete_unserved(server.registry, api_service_names)
            created_count = await ensure(server.registry, server.registry.row, required_objects)
            LOG.info("System objects: %d created", created_count)

        await ensure_system_objects()
        server.context.on_restored.append(ensure_system_objects)
        await _create_kubeadm_objects(server.registry, config, dependencies)
        endpoints = _endpoint_reconciler(server, dependencies)
        if endpoints is not None:
            await endpoints.reconcile()
            server.context.on_restored.append(endpoints.reconcile)
            server.context.supervisor.start("kubernetes-endpoints", partial(endpoints.run, clock))
        if "RBAC" in config.authorization.types:
            server.bootstrap_roles.expect()
            server.context.supervisor.start("bootstrap-roles", server.bootstrap_roles.run)
            server.context.on_restored.append(server.bootstrap_roles.invalidate)
        _start_tasks(
            config, server, dependencies.stored_port, [each for each in required_objects if each.is_recreated]
        )
        _follow_certificates(config, server, dependencies)
        await stack.enter_async_context(_listening(server, dependencies))
        if endpoints is not None:
            # Pushed last, so it runs first: clients find other servers before this one stops to accept, as upstream
            # (pkg/controlplane/controller/kubernetesservice).
            stack.push_async_callback(endpoints.remove)
        yield server


async def _create_kubeadm_objects(registry: Registry, config: Config, dependencies: Dependencies) -> None:
    """Create what kubeadm creates in a new cluster, if a flag says so."""
    options, clock = config.kubeadm, dependencies.clock
    if not options.kubeadm_pod_network:
        return
    from .bootstrap.kubeadm.creation import create_objects, random_token  # noqa: PLC0415 - other clusters do not need it
    from .bootstrap.kubeadm.objects import ClusterFacts  # noqa: PLC0415

    facts = ClusterFacts(
        minor=config.features.kubernetes_version,
        server=server_url(config.serving, dependencies.port),
        authority=dependencies.credentials.server_ca,
        service_network=",".join(config.services.service_cluster_ip_range),
        pod_network=options.kubeadm_pod_network,
        token=random_token(dependencies.random.stream("kubeadm")),
        now=clock.now(),
        endpoint=options.kubeadm_endpoint,
    )
    try:
        await create_objects(registry, facts, has_storage_class=options.kubeadm_storage_class)
    except ApiError as error:
        LOG.error("The objects of kubeadm were not all created: %s", error)  # noqa: TRY400 - it says what is wrong


def server_url(serving: Serving, port: int) -> str:
    """Return the URL of a server for clients on this machine."""
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(serving.bind_address, serving.bind_address)  # noqa: S104 - compared, not bound
    return f"https://{f'[{host}]' if ip_address(host).version == 6 else host}:{port}"


def _listening(server: ApiServer, dependencies: Dependencies) -> AbstractAsyncContextManager[None]:
    """Accept connections within the block."""
    return listening(
        server.http,
        dependencies.listeners,
        clock=dependencies.clock.real,
        drain_seconds=dependencies.drain_seconds,
        before_drain=server.end_streams,
        supervise=partial(server.context.supervisor.run_in_block, "listeners"),
    )


def _add_roles(server: ApiServer, config: Config, *, has_embedded_manager: bool) -> None:
    """Add the roles of a controller manager, of control and of simulated metrics, if the server has them."""
    if config.serving.write_manager_kubeconfig is not None or has_embedded_manager:
        server.bootstrap_roles.add(roles_of_manager(config.features.packs))
    if has_embedded_manager:
        server.bootstrap_roles.add(roles_of_single_user(config.features.kubernetes_version))
    if config.control_mode != "off":
        server.bootstrap_roles.add(roles_of_control())
    if config.features.simulate_metrics:
        server.bootstrap_roles.add(roles_of_metrics())


def _endpoint_reconciler(server: ApiServer, dependencies: Dependencies) -> EndpointReconciler | None:
    """Return the reconciler; None if the address at which clients reach the server is not known."""
    if not dependencies.address:
        return None
    address, port = dependencies.address, dependencies.port
    return EndpointReconciler(server.registry, server.registry.row, address=address, port=port)


def _start_tasks(
    config: Config, server: ApiServer, port: int, objects_to_recreate: Sequence[RequiredObject]
) -> None:
    """Start the background tasks of the server."""
    backend, host, start = server.registry, socket.gethostname(), server.context.supervisor.start
    name = server_name(host, port)
    interval, history = config.store.etcd_compaction_interval, config.store.history
    if history is not None and history.seconds is not None:
        limit = HistoryAge(backend.kv, backend.journal, clock=backend.clock, seconds=history.seconds)
        start("compaction", limit.run)
    elif history is None and interval:
        compactor = partial(
            Compactor,
            backend.kv,
            clock=backend.clock,
            interval=interval,
            journal=backend.journal,
            oldest_needed=server.control.oldest_needed,
        )
        start("compaction", lambda: compactor().run())
    renew = partial(
        keep_alive,
        backend,
        server.registry.row,
        host=host,
        name=name,
        holder=f"{name}_{randomness.uid(backend.random)}",
        clock=backend.clock,
    )
    start("identity-lease", renew)
    start(
        "system-objects",
        partial(recreate_deleted, backend, server.registry.row, objects_to_recreate, backend.clock),
    )
    if config.features.gates.is_on("DetectCacheInconsistency"):
        start("watch-cache-check", server.storage.consistency_check.run)


def _follow_certificates(config: Config, server: ApiServer, dependencies: Dependencies) -> None:
    """Start the tasks that publish the client CAs and reload the certificate files."""
    certificates, start = dependencies.credentials.tls, server.context.supervisor.start
    trust = TrustController(
        server.registry,
        server.registry.row,
        lambda: authentication_config_map(_server_properties(config, dependencies)),
    )
    start("authentication-trust", trust.run)
    if certificates.follows_files:
        certificates.on_change.append(trust.invalidate)
        start("serving-certificates", lambda: certificates.run(dependencies.clock.real))


def _environment(config: Config, dependencies: Dependencies) -> ServerEnvironment:
    return ServerEnvironment(
        trust=dependencies.credentials.trust,
        credentials=dependencies.credentials,
        clock=dependencies.clock,
        random=dependencies.random,
        address=lambda: f"{dependencies.address or config.serving.bind_address}:{dependencies.port}",
        identity=server_name(socket.gethostname(), dependencies.stored_port),
        is_embedded=dependencies.is_embedded or dependencies.has_embedded_manager,
        component_probes=dependencies.component_probes,
        read_controllers=dependencies.read_controllers,
        local_ports=dependencies.local_ports,
    )


def _server_properties(config: Config, dependencies: Dependencies) -> ServerProperties:
    return ServerProperties(
        minor=config.features.kubernetes_version,
        port=dependencies.stored_port,
        service_ranges=config.services.service_cluster_ip_range,
        client_ca=dependencies.credentials.tls.client_ca,
        proxy_ca=dependencies.credentials.proxy_ca,
        request_headers=dependencies.credentials.trust.request_headers,
        request_headers_ca=dependencies.credentials.tls.request_headers_ca,
        now=format_time(dependencies.clock.now()),
    )
