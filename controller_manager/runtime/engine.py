"""What an engine is: a controller that must talk to the server while it decides, or that is no reconciler at all.

The application builds each with a context of its own account, and runs it while the process leads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from apimachinery.chance import Chance
from apimachinery.clock import Clock
from controller_manager.config.command_line import Config
from controller_manager.runtime.client import Client
from controller_manager.runtime.events.recorder import Recorders
from controller_manager.runtime.informers import Informers
from controller_manager.runtime.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a controller or an engine is given to work with."""

    client: Client
    """With the credentials of its own account."""
    informers: Informers
    """Shared by all; they run once everything is built."""
    clock: Clock
    chance: Chance
    recorder: Recorders
    metrics: Metrics
    options: Config


class Running(Protocol):
    """Runs until it is cancelled, and ends what it began before it lets go."""

    async def run(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    name: str
    """As `--controllers` names it: `garbage-collector-controller`."""
    service_account: str
    """Empty for one that is no controller, and shows what the process shows."""
    build: Callable[[Context], Running]
    """Called before the informers run; an engine adds its handlers and indexes then, and asks nothing."""
