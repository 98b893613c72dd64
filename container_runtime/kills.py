"""The ends of containers whose runs are computed, and that a command in them has ended before their time."""

from datetime import datetime

from msgspec import Struct


class ContainerKill(Struct, frozen=True, kw_only=True):
    restarts: int
    """The run, by the number of restarts before it."""
    at: datetime
    code: int
    reason: str = ""
    """The reason in the status; empty for Completed and Error."""
