"""What is known of a container that runs as a local process: facts that the model of pods takes as they are. Pure."""

from datetime import datetime

from msgspec import Struct


class Exit(Struct, frozen=True, kw_only=True):
    """How a run ended."""

    code: int
    at: datetime
    reason: str = ""
    """Where it is neither Completed nor Error."""
    message: str = ""


class ProcessState(Struct, frozen=True, kw_only=True):
    """The latest run of a container."""

    restarts: int = -1
    """Which run it is; -1 before the first."""
    started: datetime | None = None
    """None while it is being started."""
    exit: Exit | None = None
    passed_startup: bool = False
    is_ready: bool = False
    is_stopping: bool = False
    waiting_reason: str = ""
    """Why it could not be started so far."""
    waiting_message: str = ""

    @property
    def is_alive(self) -> bool:
        """It is being started, or runs."""
        return self.restarts >= 0 and self.exit is None


NEVER_RAN = ProcessState()
