"""The states of containers from which their statuses are computed: of one that runs in real time, and of one that a command has ended."""

from datetime import datetime

from msgspec import Struct


class Exit(Struct, frozen=True, kw_only=True):
    """The end of a run."""

    code: int
    at: datetime
    reason: str = ""
    """The reason in the status; empty for Completed and Error."""
    message: str = ""


class ContainerKill(Struct, frozen=True, kw_only=True):
    """The end of a container whose run is computed, and that a command in it has ended before its time."""

    restarts: int
    """The run, by the number of restarts before it."""
    at: datetime
    code: int
    reason: str = ""
    """The reason in the status; empty for Completed and Error."""


class ContainerState(Struct, frozen=True, kw_only=True):
    """The state of a container's latest run."""

    restarts: int = -1
    """The number of restarts before the run; -1 before the first run."""
    started: datetime | None = None
    """The start of the process; None until it has started."""
    exit: Exit | None = None
    passed_startup: bool = False
    is_ready: bool = False
    is_stopping: bool = False
    waiting_reason: str = ""
    """The reason why the run has not started, or does not go on; empty if there is none."""
    waiting_message: str = ""
    is_simulated: bool = False
    """Whether its command is a simulated one; its probes and hooks are those of a simulated container."""

    @property
    def is_alive(self) -> bool:
        """Whether the run is starting or running."""
        return self.restarts >= 0 and self.exit is None


NEVER_RAN = ContainerState()
NEVER_SIMULATED = ContainerState(is_simulated=True)
