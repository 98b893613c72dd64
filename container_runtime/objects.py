"""What a run-time reads of its pods through the kubelet: their objects, and their latest versions."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeVar

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock

from .config.environment import References

LOG: Final = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 60.0
"""The interval in which files of ConfigMaps, Secrets and tokens are updated: that of a kubelet."""
T = TypeVar("T")


class ObjectsUnavailable(Exception):
    """The API server refuses the requests for the objects, or does not respond; the message is its own."""


class ObjectReader(Protocol):
    """Reads the objects that containers refer to."""

    async def load_shared(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int | None = None
    ) -> References:
        """Return the references of a container's run, or raise `ObjectsUnavailable`.

        `restarts` is the run, if the pod's status lacks it yet.
        """


class PodVersions(Protocol):
    """The latest versions of pods."""

    def latest(self, pod: ReadOnlyTree) -> ReadOnlyTree | None:
        """Return the latest version of a pod; None if it was deleted or replaced."""

    def subscribe(self, pod: ReadOnlyTree) -> AbstractContextManager[asyncio.Event]:
        """Return an event that is set after each change of the pod, and each output of its containers."""


async def retry_until_available(
    work: Callable[[], Awaitable[T]], clock: Clock, seconds: float, name: str
) -> T:
    """Return the result of `work`, which is done again after some seconds while the objects are not available.

    Logs say that `name` waits.
    """
    while True:
        try:
            return await work()
        except ObjectsUnavailable as error:
            LOG.warning("%s waits for the server: %s", name, error)
            await clock.sleep(seconds)
