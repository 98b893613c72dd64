"""What an engine is: a controller that must talk to the server while it decides, or that is no reconciler at all.

The application builds each with a context of its own account, and runs it while the process leads.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

ContextT = TypeVar("ContextT")


class Running(Protocol):
    """Runs until it is cancelled, and ends what it began before it lets go."""

    async def run(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine(Generic[ContextT]):
    name: str
    """As `--controllers` names it: `garbage-collector-controller`."""
    service_account: str
    build: Callable[[ContextT], Running]
