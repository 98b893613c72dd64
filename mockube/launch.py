"""How a control plane is launched, as two processes or inside this one: the flags of its API server and its controller manager."""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path
from typing import Final

from msgspec import Struct

from mockube.apimachinery.ip_addresses import dns_address
from mockube.component_base.flags import DEFAULT_SERVICE_NETWORKS
from mockube.component_base.packs import own_pack_names
from mockube.kubelet.addresses import node_address
from mockube.kubelet.installation import DEFAULT_PORT
from mockube.kubelet.node_pools.pool import NodePools, plain_nodes

NAME: Final = "default"
"""The default name of a cluster."""
NODES: Final = 3
DEFAULT_NODES: Final = plain_nodes(NODES)
PACKS: Final = ",".join(own_pack_names())
"""The packs of kinds that are served besides those of Kubernetes: the ones that come with mockube."""
KUBECONFIG_VARIABLES: Final = ("KUBECONFIG", "MOCKUBE_KUBECONFIG")
"""The environment variables by which a program finds its cluster; the program may be `mockube` itself."""
IN_CLUSTER_VARIABLES: Final = tuple(
    f"{prefix}KUBERNETES_SERVICE_{name}" for prefix in ("", "PYKUBE_") for name in ("HOST", "PORT")
)
"""The environment variables of a pod. A program that is tested in one, as CI jobs are, must not use the cluster of the pod."""

MINIMAL: Final = "minimal"
KUBEADM: Final = "kubeadm"
MEMORY: Final = "memory"
"""Where objects are that are not stored on a disk or in etcd."""
PROFILES: Final = (KUBEADM, MINIMAL)
"""What a cluster contains: what one has that kubeadm made, or nodes for pods alone."""
_KUBEADM_MANAGER_FLAGS: Final = ("--controllers", "*,bootstrap-signer-controller,token-cleaner-controller")
_ALL_CONTROLLERS: Final = ("*",)
_POD_NETWORK: Final = "10.128.0.0/9"
"""The network of pods that kubeadm's objects name, unless flags of the manager set another."""
_STORAGE_CLASS_CREATOR: Final = "simulated-storage-class"

_LOOPBACK: Final = "127.0.0.1"
_NODE_RESTRICTION: Final = "NodeRestriction"
_SERVICE_ACCOUNT_KEY: Final = "sa.key"
_CLIENT_CA_FILES: Final = ("ca.crt", "ca.key")
"""The CA certificate and key that sign client certificates, unless flags of the server set others."""
_CLUSTER_SIGNING_FLAG_PREFIX: Final = "--cluster-signing-"
"""The prefix of the manager's flags that set other keys for signing certificates."""


class LaunchOptions(Struct, frozen=True, kw_only=True):
    """The options of a control plane."""

    nodes: NodePools = DEFAULT_NODES
    packs: str = PACKS
    """Packs of kinds to serve besides those of Kubernetes."""
    flags: Sequence[str] = ()
    """More flags of the API server. The last value of a flag applies."""
    manager_flags: Sequence[str] = ()
    """More flags of the controller manager."""
    profile: str = MINIMAL
    """What the cluster contains besides nodes for pods: `MINIMAL` or `KUBEADM`."""
    control_planes: int = 1
    """The number of control-plane nodes of the profile `KUBEADM`."""

    @property
    def is_kubeadm(self) -> bool:
        return self.profile == KUBEADM

    def server_arguments(self) -> Sequence[str]:
        return (
            *("--packs", self.packs),
            # Resource usage is simulated if nodes are; later flags of the user may change that.
            *("--simulate-metrics", str(self.nodes.count > 0 or self.is_kubeadm).lower()),
            # The admission plugin that kubeadm enables, unless other flags name it.
            *(() if any(_NODE_RESTRICTION in flag for flag in self.flags) else _WITH_NODE_RESTRICTION),
            *(self._kubeadm_flags() if self.is_kubeadm else ()),
            *_control_flags(self.flags),
            *self.flags,
        )

    def _kubeadm_flags(self) -> Iterator[str]:
        """Yield the flags of the API server with which it creates what kubeadm does."""
        network = pod_network(self.manager_flags)
        yield from ("--enable-bootstrap-token-auth", "true", "--kubeadm-pod-network", network)
        yield from ("--kubeadm-storage-class", str(_creates_storage_class(self.controllers)).lower())
        if self.control_planes > 1:  # the first of its nodes has this address in a new cluster
            address = node_address(self.nodes.count + 1)
            yield from ("--kubeadm-endpoint", f"{address}:{api_server_port(self.flags)}")

    def manager_arguments(self) -> Sequence[str]:
        return (
            *("--simulate-nodes", self.nodes.text, "--packs", self.packs),
            *_signing_flags(self.flags, self.manager_flags),
            *_cluster_dns_flags(self.flags),
            *(_KUBEADM_MANAGER_FLAGS if self.is_kubeadm and self.controllers == _ALL_CONTROLLERS else ()),
            *self.manager_flags,
        )

    @property
    def controllers(self) -> Sequence[str]:
        """The value of the manager's --controllers."""
        return selected_controllers(self.manager_flags)


def _creates_storage_class(controllers: Sequence[str]) -> bool:
    """Return whether `--controllers` includes what creates the class in a cluster of another profile: a user disables it who wants none."""
    is_included = bool({"*", _STORAGE_CLASS_CREATOR} & {*controllers})
    return is_included and f"-{_STORAGE_CLASS_CREATOR}" not in controllers


def api_server_port(flags: Sequence[str]) -> int:
    """Return the port of the API server on its nodes, which on this machine may be a free one."""
    return int(values_of(flags).get("secure-port") or 0) or DEFAULT_PORT


def values_of(flags: Iterable[str]) -> dict[str, str]:
    """Return the values of flags by name; the last value of a flag applies, and a flag without a value is true."""
    values: dict[str, str] = {}
    name = ""
    for word in flags:
        if word.startswith("--"):
            name, equals, text = word[2:].partition("=")
            values[name] = text if equals else "true"
        elif name:
            values[name] = word
    return values


def service_network(flags: Sequence[str]) -> str:
    """Return the range of Services by the flags of an API server."""
    return values_of(flags).get("service-cluster-ip-range") or ",".join(DEFAULT_SERVICE_NETWORKS)


def pod_network(manager_flags: Sequence[str]) -> str:
    """Return the network of pods in what kubeadm creates, by the flags of a controller manager."""
    return values_of(manager_flags).get("cluster-cidr") or _POD_NETWORK


def _control_flags(flags: Sequence[str]) -> Sequence[str]:
    """Return the flag that lets discovery list the group of control, unless other machines reach the server."""
    try:
        is_local = ip_address(values_of(flags).get("bind-address", _LOOPBACK)).is_loopback
    except ValueError:  # the server says what is wrong
        is_local = False
    return ("--control", "on") if is_local else ()


def _cluster_dns_flags(flags: Sequence[str]) -> Sequence[str]:
    """Return the manager's flag of the address of the name server, unless the server's range of Services is the default or too small."""
    network = service_network(flags)
    if network == ",".join(DEFAULT_SERVICE_NETWORKS):
        return ()
    try:
        return ("--cluster-dns", dns_address(network))
    except ValueError:
        return ()


_WITH_NODE_RESTRICTION: Final = ("--enable-admission-plugins", _NODE_RESTRICTION)


def temporary_server_flags(folder: Path) -> Sequence[str]:
    """Return the flags of a server on a free port, whose certificates and keys are in a folder that the caller removes."""
    return "--secure-port", "0", "--cert-dir", str(folder / "pki")


def selected_controllers(flags: Sequence[str]) -> Sequence[str]:
    """Return the value of the manager's --controllers in some flags."""
    arguments = [argument for flag in flags for argument in flag.split("=", 1)]
    values = [value for flag, value in pairwise(arguments) if flag == "--controllers"]
    return tuple(name.strip() for value in values for name in value.split(",")) or ("*",)


def _signing_flags(server: Sequence[str], manager: Sequence[str]) -> Sequence[str]:
    """Return the manager's flags for signing tokens and certificates with the server's keys, unless other flags set keys."""
    arguments = [argument for flag in server for argument in flag.split("=", 1)]
    folders = [Path(value) for flag, value in pairwise(arguments) if flag == "--cert-dir"]
    if not folders:
        return ()
    flags: list[str] = []
    if not {"--service-account-key-file", "--service-account-signing-key-file"} & {*arguments}:
        flags += ("--service-account-private-key-file", str(folders[-1] / _SERVICE_ACCOUNT_KEY))
    if "--client-ca-file" not in arguments and not any(
        flag.startswith(_CLUSTER_SIGNING_FLAG_PREFIX) for flag in manager
    ):
        certificate, key = (str(folders[-1] / name) for name in _CLIENT_CA_FILES)
        flags += ("--cluster-signing-cert-file", certificate, "--cluster-signing-key-file", key)
    return flags
