"""What a simulated kubelet wants done to one object: a closed union of effects.

Data alone, made by the model of pods and by stages; `simulation.performer` carries it out.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A patch of the object or of one of its subresources."""

    body: Any
    kind: Literal["merge", "strategic", "json"] = "strategic"
    subresource: str = "status"


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the object without further grace; nothing happens to another one that took its name."""


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """An Event about the object, or about one of its containers."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    part: str = ""
    """Which container, as a field of the object."""


Effect = Write | Remove | EmitEvent


@dataclass(frozen=True, slots=True)
class StartContainer:
    """Start the process of a container; nothing happens if that run was started already."""

    container: str
    restarts: int


@dataclass(frozen=True, slots=True)
class StopContainer:
    """Stop the process of a container, with the grace that its pod gives; nothing happens if that is under way."""

    container: str


ContainerAction = StartContainer | StopContainer


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is due now, and when to look again even if nothing changes."""

    effects: tuple[Effect, ...] = ()
    actions: tuple[ContainerAction, ...] = ()
    """Of the containers that are local processes."""
    again_at: datetime | None = None


REST = Step()
