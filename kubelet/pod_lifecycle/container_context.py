"""What the containers of a pod need and the pod itself does not contain."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from math import inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.predictions import NO_PREDICTIONS, Predictions
from mockube.container_runtime.state import ContainerKill
from mockube.kubelet.security_profiles import ALL_PROFILES, ProfilesOfNode
from mockube.kubelet.start_checks import NO_OBJECTS, ReferencedObjects

from .image_pulls import PRESENT_IMAGES, PodImages
from .observations import ObservedRun


class ContainerContext(Struct, frozen=True, kw_only=True):
    """What the containers of a pod need and the pod itself does not contain."""

    objects: ReferencedObjects = NO_OBJECTS
    """The objects that the containers refer to."""
    retry_at: datetime | None = None
    """The time of the next attempt to create one, if the last attempt failed."""
    images: PodImages = PRESENT_IMAGES
    """The images of the pod: on its node, or pulled."""
    profiles: ProfilesOfNode = ALL_PROFILES
    """The seccomp and AppArmor profiles of the node."""
    pod_ip: str = ""
    """The address that probes connect to."""
    predictions: Predictions = NO_PREDICTIONS
    """What is known of the containers before they run."""
    host_pods: Callable[[], Iterable[ReadOnlyTree]] = tuple
    """Returns the other pods in the network of the node, of which a pod with `hostNetwork` is one."""
    observed: Mapping[str, ObservedRun] = {}
    """What was observed of the containers whose probes and hooks run in real time, by name."""
    kills: Mapping[str, ContainerKill] = {}
    """The containers that a command of a client has ended, by name."""
    node_memory: Callable[[], float] = lambda: inf
    """Returns the bytes of memory of the node."""

    def observed_run(self, name: str) -> ObservedRun:
        return self.observed.get(name, _NOTHING_OBSERVED)


_NOTHING_OBSERVED: Final = ObservedRun()
NO_CONTEXT: Final = ContainerContext()
