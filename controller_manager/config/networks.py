"""Compute from the flags the cluster CIDRs from which pod CIDRs of nodes are allocated. Pure."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, NamedTuple

from mockube.kubelet.node_pools.pool import MAX_SIMULATED_NODES

from .settings import Config, Networks

Network = IPv4Network | IPv6Network

IPAM: Final = "node-ipam-controller"
SIMULATED_CIDR: Final = "10.128.0.0/9"
"""The default cluster CIDR with simulated nodes: a /16 has too few addresses for their number and size."""
_SIMULATED_MASK_SIZES: Final = (21, 22, 23)
"""The default prefix lengths of their CIDRs: the first that suffices for all nodes. A /21 has room for all pods of a node."""
_DEFAULT_MASK_SIZES: Final = {4: 24, 6: 64}
_MAX_MASK_SIZE_DIFFERENCE: Final = 16
"""The maximum difference between the prefix lengths of a node's CIDR and of an IPv6 cluster CIDR; upstream's."""


class NodeRange(NamedTuple):
    """A cluster CIDR, and the prefix length of the pod CIDR that each node gets from it."""

    network: Network
    mask: int

    @property
    def nodes(self) -> int:
        """The number of nodes that get a pod CIDR."""
        return 1 << self.mask - self.network.prefixlen


def allocates(config: Config) -> bool:
    """Return whether the manager allocates a pod CIDR for each node."""
    flag = config.networks.allocate_node_cidrs
    return config.simulation.node_count > 0 if flag is None else flag


def node_ranges(config: Config) -> tuple[NodeRange, ...]:
    """Return a range for each address family. Raises `ValueError` if the flags contradict each other."""
    networks = config.networks
    if not networks.cluster_cidr and config.simulation.node_count > 0:
        network, nodes = ip_network(SIMULATED_CIDR), config.simulation.node_count
        by_number = (mask for mask in _SIMULATED_MASK_SIZES if NodeRange(network, mask).nodes >= nodes)
        mask = networks.node_cidr_mask_size_ipv4 or networks.node_cidr_mask_size
        return (_range(network, mask or next(by_number, _SIMULATED_MASK_SIZES[-1])),)
    cluster_ranges = [ip_network(text) for text in networks.cluster_cidr]
    if not cluster_ranges:
        raise ValueError("--allocate-node-cidrs needs --cluster-cidr")
    if problem := _mask_problem(networks, [network.version for network in cluster_ranges]):
        raise ValueError(problem)
    return tuple(_range(network, _mask(networks, network.version)) for network in cluster_ranges)


def max_nodes(config: Config) -> int:
    """Return how many simulated nodes can have addresses, for themselves and for their pods."""
    ranges = node_ranges(config) if allocates(config) else ()
    return min((MAX_SIMULATED_NODES, *(one.nodes for one in ranges)))


def _mask(networks: Networks, version: int) -> int:
    family_mask = {4: networks.node_cidr_mask_size_ipv4, 6: networks.node_cidr_mask_size_ipv6}[version]
    return networks.node_cidr_mask_size or family_mask or _DEFAULT_MASK_SIZES[version]


def _mask_problem(networks: Networks, versions: list[int]) -> str:
    v4, v6 = networks.node_cidr_mask_size_ipv4, networks.node_cidr_mask_size_ipv6
    if networks.node_cidr_mask_size and len(versions) > 1:
        return "usage of --node-cidr-mask-size is not allowed with dual-stack clusters"
    if networks.node_cidr_mask_size and (v4 or v6):
        return (
            "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
            "--node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags"
        )
    if v4 and versions == [6]:
        return "usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster"
    if v6 and versions == [4]:
        return "usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster"
    return ""


def _range(network: Network, mask: int) -> NodeRange:
    if not network.prefixlen <= mask <= network.max_prefixlen:
        raise ValueError(
            "Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size "
            "configured for CIDR family"
        )
    if network.version == 6 and mask - network.prefixlen > _MAX_MASK_SIZE_DIFFERENCE:
        raise ValueError("New CIDR set failed; the node CIDR size is too big")
    return NodeRange(network, mask)
