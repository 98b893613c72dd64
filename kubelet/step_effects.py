"""The effects of a simulated kubelet on one object: a closed union.

They are data. The pod lifecycle and stages return them, and `status_writer` executes them.
"""

from datetime import datetime
from math import inf
from typing import Any, Literal

from msgspec import Struct


class PatchObject(Struct, frozen=True, kw_only=True):
    """A patch of the object or of one of its subresources."""

    body: Any
    kind: Literal["merge", "strategic", "json"] = "strategic"
    subresource: str = "status"


class DeleteObject(Struct, frozen=True):
    """Delete the object without further grace, but no other object of the same name."""


class EmitEvent(Struct, frozen=True):
    """An Event about the object, or about one of its containers."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    part: str = ""
    """The path of the container in the object; empty for the object itself."""
    of_owner: bool = False
    """Whether all pods of an owner have the event: only the first of them do, and then the owner."""
    once: str = ""
    """An occasion at which the event is recorded once for the object and its part, although later steps return it again; "" for none."""


Effect = PatchObject | DeleteObject | EmitEvent


class StartContainer(Struct, frozen=True):
    """Start the process of a container's run, unless it was started already."""

    container: str
    restarts: int


class StopContainer(Struct, frozen=True):
    """Stop the process of a container, unless it is being stopped already."""

    container: str
    grace: float = inf
    """The limit of the pod's grace period."""


class RunHook(Struct, frozen=True):
    """Run the command of a container's hook in real time, unless that was done already."""

    container: str
    hook: Literal["postStart", "preStop"]
    restarts: int


ContainerAction = StartContainer | StopContainer | RunHook


class Step(Struct, frozen=True, kw_only=True):
    """The effects and actions that are due now, and the time of the next reconciliation."""

    effects: tuple[Effect, ...] = ()
    actions: tuple[ContainerAction, ...] = ()
    """The starts and stops of containers, and the hooks, that run in real time."""
    requeue_at: datetime | None = None
    is_blocked: bool = False
    """Whether the pod waits for a ConfigMap or a Secret."""
    lacks_image: bool = False
    """Whether a container of the pod waits for an image."""


NO_STEP = Step()
