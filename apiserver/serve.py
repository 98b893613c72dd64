"""Run a server in a process until a signal stops it, and log its address."""

import logging
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address

from msgspec import Struct

from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.component_base.clock import Clock, ClusterClock
from mockube.component_base.loop import stop_signal_event
from mockube.component_base.open_files import allow_many_files

from .app import ApiServer
from .config.command_line import Config
from .config.exposure import exposure_warnings
from .config.settings import Serving
from .control.controllers import ReadControllers
from .http.server import Listener, bind
from .registry.component_statuses import NO_PROBES, EmbeddedProbe
from .running import LOOPBACK, Dependencies, running, server_url
from .serving_credentials import Credentials, load_credentials
from .stored_release import change_of_release, last_minor, record_minor

LOG = logging.getLogger(__name__)

READY = b"READY=1"
_REMOTE_ADDRESS = ("192.0.2.1", 9)
"""An address that no machine has (TEST-NET-1): the source address of the route to it is this machine's address."""


class RunningServer(Struct, frozen=True, kw_only=True):
    """A server that accepts requests."""

    server: ApiServer
    listeners: list[Listener]
    credentials: Credentials
    url: str


async def serve(config: Config, *, once_ready: Callable[[], None]) -> None:
    """Serve until a signal stops it."""
    clock = ClusterClock()
    stopping = stop_signal_event()
    async with serving(config, clock=clock, random=SystemRandom(), once_ready=once_ready) as running_server:
        await stopping.wait()
        LOG.info("Stopping: /readyz fails and requests in flight may finish; a second signal cancels them")
        running_server.server.context.lifecycle.begin_shutdown()
        await clock.real.sleep(config.serving.shutdown_delay_duration)
    LOG.info("Stopped")


@asynccontextmanager
async def serving(  # noqa: PLR0913 - each argument is a part
    config: Config,
    *,
    clock: Clock,
    random: Random,
    once_ready: Callable[[], None],
    is_embedded: bool = False,
    component_probes: Mapping[str, EmbeddedProbe] = NO_PROBES,
    read_controllers: ReadControllers | None = None,
) -> AsyncIterator[RunningServer]:
    """Run a server within the block. It accepts requests from the beginning of the block; `once_ready` is called when it has its roles.

    `is_embedded`, `component_probes` and `read_controllers` are for a server with a manager in the same process.
    """
    allow_many_files()
    serving, address = config.serving, _advertised_address(config.serving)
    credentials = load_credentials(config, address, now=clock.now(), random=random)
    listeners = _bind(serving, credentials)
    dependencies = Dependencies(
        listeners=listeners,
        credentials=credentials,
        address=address,
        clock=clock,
        random=random,
        drain_seconds=serving.request_timeout,
        is_embedded=is_embedded,
        component_probes=component_probes,
        read_controllers=read_controllers,
    )
    data_dir, minor = config.store.data_dir, config.features.kubernetes_version
    change = None if data_dir is None else change_of_release(last_minor(data_dir), minor)
    if change is not None:
        LOG.log(logging.INFO if change.is_supported else logging.WARNING, "%s", change.text)
    async with running(config, dependencies) as server:
        if data_dir is not None:
            record_minor(data_dir, minor)
        url = _announce(serving, listeners, credentials)
        for line in exposure_warnings(config.authorization.types, serving.allowed_hosts):
            LOG.warning("%s", line)

        def ready() -> None:
            LOG.info("Ready on %s", url)
            once_ready()

        server.bootstrap_roles.when_ready(ready)
        yield RunningServer(server=server, listeners=listeners, credentials=credentials, url=url)


def notify_ready(environment: Mapping[str, str]) -> None:
    """Notify systemd that the process is ready (sd_notify), as kube-apiserver does, if NOTIFY_SOCKET is set.

    An address that begins with @ is an abstract socket.
    """
    address = environment.get("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(READY, address.replace("@", "\0", 1) if address.startswith("@") else address)


def _bind(serving: Serving, credentials: Credentials) -> list[Listener]:
    """Return the listeners, HTTPS first."""
    listeners = [Listener(socket=bind(serving.bind_address, serving.secure_port), tls=credentials.tls)]
    if serving.http_port is not None:
        listeners.append(Listener(socket=bind(LOOPBACK, serving.http_port)))
    return listeners


def _advertised_address(serving: Serving) -> str:
    """Return the address of this machine for others, never a loopback address; "" if it is unknown."""
    bound = ip_address(serving.bind_address)
    if serving.advertise_address:
        address = ip_address(serving.advertise_address)
        if not (address.is_loopback or address.is_link_local or address.is_unspecified):
            return serving.advertise_address
        # As upstream, this error is not fatal: envtest passes 127.0.0.1.
        LOG.error("Endpoints cannot contain --advertise-address=%s: the service kubernetes has none", address)
        return ""
    if not (bound.is_unspecified or bound.is_loopback):
        return serving.bind_address
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_REMOTE_ADDRESS)
        except OSError as error:
            LOG.warning("This machine has no usable address: set --advertise-address: %s", error)
            return ""
        local_address: str = probe.getsockname()[0]
    return local_address


def _announce(serving: Serving, listeners: list[Listener], credentials: Credentials) -> str:
    """Write the kubeconfigs, log the addresses, and return the URL of the server."""
    url, path = server_url(serving, listeners[0].port), serving.write_kubeconfig
    if path is not None:
        credentials.write_kubeconfig(path, url)
        LOG.info("Kubeconfig: %s", path)
    if serving.write_manager_kubeconfig is not None:
        credentials.write_manager_kubeconfig(serving.write_manager_kubeconfig, url)
    for listener in listeners[1:]:
        LOG.warning(
            "Serving without encryption on http://%s:%d: every user of this machine can read it",
            LOOPBACK,
            listener.port,
        )
    LOG.info("Serving securely on %s", url)
    return url
