"""The cluster ranges from which node ranges are allocated, as the flags set them. Pure."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, NamedTuple

from mockube.controller_manager.config.settings import Config, Networks

Network = IPv4Network | IPv6Network

IPAM: Final = "node-ipam-controller"
SIMULATED_CIDR: Final = "10.128.0.0/9"
"""With simulated nodes, whose number and size are beyond what /16 and /24 have room for."""
SIMULATED_MASK: Final = 21
_USUAL_MASK: Final = {4: 24, 6: 64}
_MAX_DIFFERENCE: Final = 16
"""Of IPv6, upstream: between the length of the whole range's prefix and of a node's."""


class NodeRange(NamedTuple):
    """Where nodes have one of their ranges from, and the length of its prefix."""

    network: Network
    mask: int


def allocates(config: Config) -> bool:
    """Whether each node gets a range."""
    flag = config.networks.allocate_node_cidrs
    return config.simulation.simulate_nodes > 0 if flag is None else flag


def node_ranges(config: Config) -> tuple[NodeRange, ...]:
    """One for each family of addresses; `ValueError` where flags do not go together."""
    networks = config.networks
    if not networks.cluster_cidr and config.simulation.simulate_nodes > 0:
        mask = networks.node_cidr_mask_size_ipv4 or networks.node_cidr_mask_size or SIMULATED_MASK
        return (_range(ip_network(SIMULATED_CIDR), mask),)
    cluster_ranges = [ip_network(text) for text in networks.cluster_cidr]
    if not cluster_ranges:
        raise ValueError("--allocate-node-cidrs needs --cluster-cidr")
    if problem := _mask_problem(networks, [network.version for network in cluster_ranges]):
        raise ValueError(problem)
    return tuple(_range(network, _mask(networks, network.version)) for network in cluster_ranges)


def _mask(networks: Networks, version: int) -> int:
    of_family = {4: networks.node_cidr_mask_size_ipv4, 6: networks.node_cidr_mask_size_ipv6}[version]
    return networks.node_cidr_mask_size or of_family or _USUAL_MASK[version]


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
    if network.version == 6 and mask - network.prefixlen > _MAX_DIFFERENCE:
        raise ValueError("New CIDR set failed; the node CIDR size is too big")
    return NodeRange(network, mask)
