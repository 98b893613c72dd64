"""The effects of a simulated kubelet on one object: a closed union.

Data alone, returned by the pod lifecycle and by stages; `status_writer` executes it.
"""

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct


class Write(Struct, frozen=True, kw_only=True):
    """A patch of the object or of one of its subresources."""

    body: Any
    kind: Literal["merge", "strategic", "json"] = "strategic"
    subresource: str = "status"


class Remove(Struct, frozen=True):
    """Delete the object without further grace; nothing happens to another one that took its name."""


class EmitEvent(Struct, frozen=True):
    """An Event about the object, or about one of its containers."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    part: str = ""
    """Which container, as a field of the object."""


Effect = Write | Remove | EmitEvent


class StartContainer(Struct, frozen=True):
    """Start the process of a container; nothing happens if that run was started already."""

    container: str
    restarts: int


class StopContainer(Struct, frozen=True):
    """Stop the process of a container, with the grace that its pod gives; nothing happens if that is under way."""

    container: str


ContainerAction = StartContainer | StopContainer


class Step(Struct, frozen=True, kw_only=True):
    """What is due now, and when to look again even if nothing changes."""

    effects: tuple[Effect, ...] = ()
    actions: tuple[ContainerAction, ...] = ()
    """Of the containers that are local processes."""
    again_at: datetime | None = None


REST = Step()
