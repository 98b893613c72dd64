"""The settings of a server, besides its store and its trust."""

from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from mockube.apimachinery.clock import Clock, RealClock
from mockube.apimachinery.feature_gates import FeatureGates, Setting
from mockube.apimachinery.schema import minors
from mockube.apiserver.admission.chain import DEFAULT_PLUGINS, PluginSelection
from mockube.apiserver.authz.rights import DEFAULT_MODES
from mockube.apiserver.http.authorities import Authorities
from mockube.apiserver.http.backend_connection import KubeletClient
from mockube.apiserver.kinds.common.addresses import Network
from mockube.apiserver.kinds.resource_config import NO_OVERRIDES, Overrides
from mockube.apiserver.pki.issue import Pair
from mockube.apiserver.registry.subresources.locations import PREFERRED_ADDRESSES
from mockube.apiserver.request.filter import Middleware
from mockube.apiserver.request.hosts import Hosts
from mockube.apiserver.request.limits import Budget

if TYPE_CHECKING:
    from mockube.apiserver.authz.configured_authorizers import AuthorizationSettings


class Settings(Struct, frozen=True, kw_only=True):
    prefix: str = "/registry"
    """The prefix of all keys."""
    address: str = "127.0.0.1:6443"
    """The address of the server for clients."""
    identity: str = ""
    """The identity of this server among those of its cluster."""
    hosts: Hosts = field(default_factory=Hosts)
    """The allowed host names."""
    service_cluster_ip_ranges: Sequence[Network] = (IPv4Network("10.0.0.0/16"),)
    service_node_ports: range = range(30000, 32768)
    budget: Budget = field(default_factory=Budget)
    event_ttl: float = 3600.0
    """Seconds for which events are kept."""
    plugins: PluginSelection = DEFAULT_PLUGINS
    """The admission plugins that are enabled or disabled, and their configurations."""
    authorization_modes: Sequence[str] = DEFAULT_MODES
    authorization: "AuthorizationSettings | None" = None
    """Settings of authorization besides its modes: webhooks and policies, and the file that configures them."""
    webhook_services: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """The addresses of webhooks' Services without an endpoint on this machine, by NAMESPACE/NAME."""
    allows_simulated_webhooks: bool = False
    """Whether writes pass without webhooks whose Services lead to simulated pods only."""
    authorities: Authorities | None = None
    """The CAs of clients and of front proxies; None without front proxies."""
    proxy_certificate: Pair | None = None
    """The client certificate for aggregated API servers."""
    allow_privileged: bool = True
    """Whether containers may be privileged."""
    kubelets: KubeletClient = field(default_factory=KubeletClient)
    """The client certificate for kubelets."""
    kubelet_addresses: Sequence[str] = PREFERRED_ADDRESSES
    """The types of node addresses, the preferred one first."""
    watch_list: bool = True
    """Whether watches can begin with the existing objects (sendInitialEvents)."""
    minor: str = minors.NEWEST
    """The minor release of Kubernetes that the server implements."""
    feature_gates: tuple[Setting, ...] = ()
    """The settings of feature gates; the others have their default in the minor release."""
    overrides: Overrides = NO_OVERRIDES
    """The APIs that are enabled or disabled by flags."""
    names_flows: bool = True
    """Whether a response names the flow schema and the priority level of its request."""
    git_version: str = ""
    """The version that is reported instead of the release's own version; "" for the latter."""
    packs: Sequence[str] = ()
    """The packs whose kinds are served besides those of Kubernetes."""
    simulate_metrics: bool = False
    """Whether metrics.k8s.io is served."""
    audit_log: Path | None = None
    audit_policy: Path | None = None
    connection_clock: Clock = field(default_factory=RealClock)
    """The clock of clients' timeouts for sending and reading: real time, whatever the server's clock is."""
    flags: Callable[[], Mapping[str, str]] = dict
    """Returns the flags of the process: their values by name."""
    middleware: Middleware | None = None
    """Called around every authenticated request."""

    @property
    def gates(self) -> FeatureGates:
        return FeatureGates(self.minor, self.feature_gates)
