"""Run a manager as a process: open its ports, run its work, and stop in order after a signal."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import Any

from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.client.kubeconfig import KubeconfigError
from mockube.component_base import serving_certificates
from mockube.component_base.clock import Clock, ClusterClock
from mockube.component_base.component_urls import CONTROLLERS_PAGE, CONTROLLERS_TOKEN, write_component_urls
from mockube.component_base.loop import stop_signal_event
from mockube.component_base.supervision import first_cause, start

from . import controllers_page
from .app import Manager, components
from .config.settings import Config, SecureServing
from .control.followed_server import UnusableFlags
from .http_endpoints import ListenAddress, serving

LOG = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_TOKEN_BYTES = 32


class ManagerFailed(Exception):
    """The error of a manager that was not stopped; its cause was logged."""


async def serve(config: Config) -> None:
    """Run a manager until SIGTERM or SIGINT. Raises the error if it ends for another reason."""
    clock, random = ClusterClock(), SystemRandom()
    stop_signal = stop_signal_event()
    manager = Manager(config, clock=clock, random=random, follows=clock)
    async with serving_status(manager, config, clock, random):
        manager_task = start("manager", manager.run(), endless=True)
        signal_task = start("signals", stop_signal.wait(), on_failure=manager.fail)
        await asyncio.wait({manager_task, signal_task}, return_when=asyncio.FIRST_COMPLETED)
        signal_task.cancel()
        if not manager_task.done():
            LOG.info("Stopping: waiting for reconciliations in progress; a second signal cancels them")
            manager_task.cancel()
        for task in (manager_task, signal_task):
            with suppress(asyncio.CancelledError):
                await _await_task(task)
    LOG.info("Stopped")


@asynccontextmanager
async def serving_status(
    manager: Manager, config: Config, clock: Clock, random: Random
) -> AsyncIterator[None]:
    """Serve the health and the metrics of a manager within the block."""
    token = random.bytes(_TOKEN_BYTES).hex()
    async with serving(manager.status_sources, _ports(config.serving, clock, random), token) as urls:
        for url in urls:
            LOG.info("Health and metrics: %s", url)
        if urls and config.serving.write_component_urls is not None:
            health_urls = dict.fromkeys(components(config), f"{urls[0]}/healthz")
            pages = {CONTROLLERS_PAGE: f"{urls[-1]}{controllers_page.PATH}", CONTROLLERS_TOKEN: token}
            write_component_urls(config.serving.write_component_urls, health_urls | pages)
        yield


async def _await_task(task: asyncio.Task[Any]) -> None:
    try:
        await task
    except (OSError, KubeconfigError):
        raise
    except Exception as error:
        cause = first_cause(error)
        if isinstance(cause, UnusableFlags):
            raise cause from error
        raise ManagerFailed(f"the manager failed: {type(cause).__name__}: {cause}") from error


def _ports(settings: SecureServing, clock: Clock, random: Random) -> list[ListenAddress]:
    ports = []
    address = settings.bind_address
    if settings.secure_port:
        if settings.tls_cert_file is not None and settings.tls_private_key_file is not None:
            tls = serving_certificates.tls_context(settings.tls_cert_file, settings.tls_private_key_file)
        else:
            tls = serving_certificates.self_signed_tls_context(address, now=clock.now(), random=random)
        if settings.client_ca_file is not None:
            serving_certificates.request_client_certificates(tls, settings.client_ca_file)
        ports.append(ListenAddress(address=address, number=settings.secure_port, tls=tls))
    if settings.metrics_port is not None:
        metrics_address = address if ip_address(address).is_loopback else LOOPBACK
        ports.append(ListenAddress(address=metrics_address, number=settings.metrics_port))
    return ports
