"""What the wiring of a server is told, besides its store and whom it trusts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

from apiserver.allocation.addresses import Network
from apiserver.http.around import Around
from apiserver.http.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    prefix: str = "/registry"
    """What all keys begin with."""
    address: str = "127.0.0.1:6443"
    """Where clients find the server."""
    service_cluster_ip_ranges: Sequence[Network] = (IPv4Network("10.0.0.0/16"),)
    service_node_ports: range = range(30000, 32768)
    budget: Budget = field(default_factory=Budget)
    event_ttl: float = 3600.0
    """Seconds for which events are kept."""
    disabled_plugins: Collection[str] = ()
    """Of admission, by name."""
    allow_privileged: bool = True
    """Whether containers may be privileged."""
    watch_list: bool = True
    """Whether watches may begin with what there is."""
    packs: Sequence[str] = ()
    """Whose kinds are served besides Kubernetes' own."""
    audit_log: Path | None = None
    audit_policy: Path | None = None
    around: Around | None = None
    """What every request is put through whose sender is known; it costs nothing where there is none."""
