"""One manager's life: its ports open, it works, and at a signal it ends in order."""

import asyncio
import logging
import signal
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from mockube.apimachinery.clock import Clock, RealClock
from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.controller_manager import http_endpoints as certificate
from mockube.controller_manager.app import Manager
from mockube.controller_manager.client.kubeconfig import KubeconfigError
from mockube.controller_manager.config.settings import Config, Serving
from mockube.controller_manager.http_endpoints import Port, serving
from mockube.controller_manager.supervision import ManagerFailed, first_cause, start

LOG = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


async def serve(config: Config) -> None:
    """Run until a signal to stop. Raises any other error that ended it."""
    clock, random = RealClock(), SystemRandom()
    stopping = _on_stop_signal()
    manager = Manager(config, clock=clock, random=random)
    async with serving(manager.status_sources, _ports(config.serving, clock, random)) as urls:
        for url in urls:
            LOG.info("Health and metrics: %s", url)
        working = start("manager", manager.run(), endless=True)
        waiting = start("signals", stopping.wait(), on_failure=manager.fail)
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not working.done():
            LOG.info("Stopping: current keys are finished, a second signal cancels them")
            working.cancel()
        for task in (working, waiting):
            with suppress(asyncio.CancelledError):
                await _end_of(task)
    LOG.info("Stopped")


async def _end_of(task: asyncio.Task[Any]) -> None:
    try:
        await task
    except (OSError, KubeconfigError):
        raise
    except Exception as error:
        cause = first_cause(error)
        raise ManagerFailed(f"the manager ends: {type(cause).__name__}: {cause}") from error


def _ports(settings: Serving, clock: Clock, random: Random) -> list[Port]:
    ports = []
    address = settings.bind_address
    if settings.secure_port:
        if settings.tls_cert_file is not None and settings.tls_private_key_file is not None:
            tls = certificate.context(settings.tls_cert_file, settings.tls_private_key_file)
        else:
            tls = certificate.self_signed(address, now=clock.now(), random=random)
        if settings.client_ca_file is not None:
            certificate.request_client_certificates(tls, settings.client_ca_file)
        ports.append(Port(address=address, number=settings.secure_port, tls=tls))
    if settings.metrics_port is not None:
        own = address if ip_address(address).is_loopback else LOOPBACK
        ports.append(Port(address=own, number=settings.metrics_port))
    return ports


def _on_stop_signal() -> asyncio.Event:
    """Set by the first signal to stop; the second one has its default effect."""
    stopping = asyncio.Event()
    loop, signals = asyncio.get_running_loop(), (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopping.set()
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, stop)
    return stopping
