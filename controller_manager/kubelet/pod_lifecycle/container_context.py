"""What the containers of a pod need and the pod itself does not contain."""

from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.controller_manager.kubelet.containers.start_checks import NO_OBJECTS, ReferencedObjects


class ContainerContext(Struct, frozen=True, kw_only=True):
    """What the containers of a pod need and the pod itself does not contain."""

    objects: ReferencedObjects = NO_OBJECTS
    """The objects that the containers refer to."""
    retry_at: datetime | None = None
    """The time of the next attempt to create one, if the last attempt failed."""
    fails_unknown_programs: bool = False
    """Whether programs that are not simulated fail, if no annotation says otherwise."""
    pod_ip: str = ""
    """The address that probes connect to."""


NO_CONTEXT: Final = ContainerContext()
