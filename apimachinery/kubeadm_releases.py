"""What differs between the minor releases of kubeadm. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from .schema import minors


class Versions(NamedTuple):
    """The tags of the images that kubeadm uses, besides those of Kubernetes itself (cmd/kubeadm/app/constants)."""

    coredns: str
    etcd: str
    pause: str


VERSIONS: Final[Mapping[str, Versions]] = {
    "1.37": Versions("v1.14.6", "3.7.0-0", "3.10.2"),
    "1.36": Versions("v1.14.2", "3.6.8-0", "3.10.2"),
    "1.35": Versions("v1.13.1", "3.6.6-0", "3.10.1"),
    "1.34": Versions("v1.12.1", "3.6.5-0", "3.10.1"),
    "1.33": Versions("v1.12.0", "3.5.24-0", "3.10"),
    "1.32": Versions("v1.11.3", "3.5.24-0", "3.10"),
    "1.31": Versions("v1.11.3", "3.5.24-0", "3.10"),
    "1.30": Versions("v1.11.3", "3.5.15-0", "3.9"),
    "1.29": Versions("v1.11.1", "3.5.16-0", "3.9"),
}


class Differences(NamedTuple):
    """What a minor release of kubeadm writes, and an older one does not."""

    has_probe_ports: bool
    """Whether probes name their ports."""
    has_scheduler_readiness: bool
    """Whether the scheduler has a readiness probe, and its probes ask /livez."""
    has_etcd_readiness: bool
    """Whether etcd has a readiness probe, and its probes ask /livez and /readyz."""
    has_etcd_features: bool
    """Whether flags of etcd have left their experimental names."""
    has_new_configuration: bool
    """Whether the ClusterConfiguration is v1beta4."""
    limits_cache: bool
    """Whether CoreDNS does not cache names of the cluster."""
    has_proxy_mode: bool
    """Whether the mode of kube-proxy is set."""
    has_kubelet_client: bool
    """Whether the API server's client of kubelets has a role of its own."""


def differences(minor: str) -> Differences:
    def since(first: str) -> bool:
        return not minors.is_before(minor, first)

    return Differences(
        has_probe_ports=since("1.34"),
        has_scheduler_readiness=since("1.32"),
        has_etcd_readiness=since("1.31"),
        has_etcd_features=since("1.34"),
        has_new_configuration=since("1.31"),
        limits_cache=since("1.31"),
        has_proxy_mode=since("1.37"),
        has_kubelet_client=since("1.37"),
    )
