"""What the publisher is made from."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component import ComponentContext
from mockube.container_runtime.images.table import PortBehavior
from mockube.container_runtime.runtime import PortConnection
from mockube.network.view import SyncedView


class PublisherSettings(Struct, frozen=True, kw_only=True):
    is_enabled: bool
    address: str
    """The address of this machine for everything but load balancers with addresses of their own."""
    balancers: str
    """The range of the addresses of load balancers."""
    http_port: int
    https_port: int
    """The ports of Ingresses and Gateways that are tried first."""


class FindListener(Protocol):
    """Returns what connects a client to a port of a pod, as `ContainerRuntime.listener` does."""

    def __call__(
        self, pod: ReadOnlyTree, port: int, *, simulated: bool = True, source: str = "127.0.0.1"
    ) -> PortConnection | None: ...


class PublisherContext(ComponentContext, frozen=True, kw_only=True):
    settings: PublisherSettings
    view: SyncedView
    port_behavior: Callable[[ReadOnlyTree, int], PortBehavior | None]
    """Returns what the server of a pod does on a port; None if it is not simulated."""
    find_listener: FindListener
    admin_policy: Callable[[], Awaitable[str]]
    """Returns a policy of administrators, which the network does not simulate; "" if there is none."""
