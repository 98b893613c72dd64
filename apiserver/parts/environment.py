"""What a server has besides its flags."""

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from mockube.apimachinery.randomness import Random, SystemRandom
from mockube.apiserver.authn.chain import Trust
from mockube.apiserver.control.controllers import ReadControllers
from mockube.apiserver.registry.component_statuses import NO_PROBES, EmbeddedProbe
from mockube.apiserver.serving_credentials import Credentials
from mockube.component_base.clock import Clock, ClusterClock
from mockube.component_base.local_ports import LocalPorts


class ServerEnvironment(Struct, frozen=True, kw_only=True):
    trust: Trust
    """The authorities and tokens that identify users."""
    credentials: Credentials | None = None
    """The certificates of the server; None without TLS."""
    clock: Clock = field(default_factory=ClusterClock)
    random: Random = field(default_factory=SystemRandom)
    address: Callable[[], str] = lambda: "127.0.0.1:6443"
    """Returns the address of the server for clients, which is another one in a forked process."""
    identity: str = ""
    """The identity of this server among those of its cluster."""
    is_embedded: bool = False
    """Whether the program that runs the server controls it: then it records requests whatever the flags."""
    component_probes: Mapping[str, EmbeddedProbe] = NO_PROBES
    """The probes of a controller manager in the same process, by component."""
    read_controllers: ReadControllers | None = None
    """Reads the queues of that manager; None if the manager is another process."""
    local_ports: LocalPorts = field(default_factory=dict)
    """The listeners of that manager."""
