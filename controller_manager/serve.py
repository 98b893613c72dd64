"""One manager's life: its ports open, it works, and at a signal it ends in order."""

import asyncio
import logging
import signal
from contextlib import suppress
from ipaddress import ip_address

from apimachinery.chance import Chance, SystemChance
from apimachinery.clock import Clock, RealClock
from controller_manager.app import Manager
from controller_manager.config.command_line import Config
from controller_manager.config.settings import Serving
from controller_manager.runtime import certificate
from controller_manager.runtime.serving import Port, serving

LOG = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


async def serve(config: Config) -> None:
    """Until a signal says stop. Raises what else ended it."""
    clock, chance = RealClock(), SystemChance()
    stopping = _signalled()
    manager = Manager(config, clock=clock, chance=chance)
    async with serving(manager.told, _ports(config.serving, clock, chance)) as urls:
        for url in urls:
            LOG.info("Health and metrics: %s", url)
        working = asyncio.create_task(manager.run(), name="manager")
        waiting = asyncio.create_task(stopping.wait(), name="signals")
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not working.done():
            LOG.info("Stopping: what is in hand is finished, a second signal ends it at once")
            working.cancel()
        with suppress(asyncio.CancelledError):
            await working
    LOG.info("Stopped")


def _ports(settings: Serving, clock: Clock, chance: Chance) -> list[Port]:
    ports = []
    address = settings.bind_address
    if settings.secure_port:
        if settings.tls_cert_file is not None and settings.tls_private_key_file is not None:
            tls = certificate.context(settings.tls_cert_file, settings.tls_private_key_file)
        else:
            tls = certificate.self_signed(address, now=clock.now(), chance=chance)
        if settings.client_ca_file is not None:
            certificate.know_clients(tls, settings.client_ca_file)
        ports.append(Port(address=address, number=settings.secure_port, tls=tls))
    if settings.metrics_port is not None:
        own = address if ip_address(address).is_loopback else LOOPBACK
        ports.append(Port(address=own, number=settings.metrics_port))
    return ports


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
