"""Flags for node CIDR ranges: parsing, and error messages for contradictory values."""

import pytest

from mockube.controller_manager.config.networks import allocates, max_nodes, node_ranges
from mockube.controller_manager.config.settings import Config, Networks, Simulation
from mockube.kubelet.node_pools.pool import plain_nodes


def config(nodes=0, **networks):
    return Config(simulation=Simulation(simulate_nodes=plain_nodes(nodes)), networks=Networks(**networks))


@pytest.mark.parametrize(
    ("given", "ranges"),
    [
        (config(3), ["10.128.0.0/9 21"]),
        (config(4096), ["10.128.0.0/9 21"]),
        (config(5000), ["10.128.0.0/9 22"]),
        (config(15000), ["10.128.0.0/9 23"]),
        (config(5000, node_cidr_mask_size=21), ["10.128.0.0/9 21"]),
        (config(3, node_cidr_mask_size=24), ["10.128.0.0/9 24"]),
        (config(3, node_cidr_mask_size_ipv4=25), ["10.128.0.0/9 25"]),
        (config(3, node_cidr_mask_size=24, node_cidr_mask_size_ipv4=25), ["10.128.0.0/9 25"]),
        (config(3, cluster_cidr=("10.0.0.0/16",)), ["10.0.0.0/16 24"]),
        (config(cluster_cidr=("fd00::/56",)), ["fd00::/56 64"]),
        (config(cluster_cidr=("10.0.0.0/16",), node_cidr_mask_size=26), ["10.0.0.0/16 26"]),
        (
            config(cluster_cidr=("fd00::/56", "10.0.0.0/16"), node_cidr_mask_size_ipv4=25),
            ["fd00::/56 64", "10.0.0.0/16 25"],
        ),
    ],
)
def test_node_ranges_are_parsed(given, ranges):
    assert [f"{one.network} {one.mask}" for one in node_ranges(given)] == ranges


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        (config(3), 4096),
        (config(5000), 8192),
        (config(15000), 15000),
        (config(3, node_cidr_mask_size=24), 15000),
        (config(3, cluster_cidr=("10.0.0.0/16",)), 256),
        (config(3, allocate_node_cidrs=False), 15000),
    ],
)
def test_pod_cidrs_limit_the_number_of_nodes(given, limit):
    assert max_nodes(given) == limit


@pytest.mark.parametrize(
    ("networks", "message"),
    [
        ({}, "--allocate-node-cidrs needs --cluster-cidr"),
        (
            {"cluster_cidr": ("10.0.0.0/16", "fd00::/56"), "node_cidr_mask_size": 24},
            "usage of --node-cidr-mask-size is not allowed with dual-stack clusters",
        ),
        (
            {"cluster_cidr": ("10.0.0.0/16",), "node_cidr_mask_size": 24, "node_cidr_mask_size_ipv4": 24},
            "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if",
        ),
        (
            {"cluster_cidr": ("10.0.0.0/16",), "node_cidr_mask_size": 24, "node_cidr_mask_size_ipv6": 64},
            "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if",
        ),
        (
            {"cluster_cidr": ("fd00::/56",), "node_cidr_mask_size_ipv4": 24},
            "not allowed for a single-stack IPv6 cluster",
        ),
        (
            {"cluster_cidr": ("10.0.0.0/16",), "node_cidr_mask_size_ipv6": 64},
            "not allowed for a single-stack IPv4 cluster",
        ),
        ({"cluster_cidr": ("10.0.0.0/25",)}, "mask size of cluster CIDR must be less than or equal to"),
        ({"cluster_cidr": ("10.0.0.0/16",), "node_cidr_mask_size": 33}, "Invalid --cluster-cidr"),
        ({"cluster_cidr": ("fd00::/32",)}, "the node CIDR size is too big"),
    ],
)
def test_contradictory_network_flags_are_refused(networks, message):
    with pytest.raises(ValueError, match=message):
        node_ranges(config(**networks))


def test_range_of_the_other_family_may_have_a_mask():
    both = {"cluster_cidr": ("10.0.0.0/16", "fd00::/56"), "node_cidr_mask_size_ipv6": 72}
    assert [one.mask for one in node_ranges(config(**both))] == [24, 72]
    wide = {"cluster_cidr": ("10.0.0.0/8",), "node_cidr_mask_size": 26}
    assert [one.mask for one in node_ranges(config(**wide))] == [26], "the size of IPv4 ranges has no limit"


def test_simulated_nodes_need_ranges():
    assert [allocates(config(nodes)) for nodes in (0, 1)] == [False, True]
    assert allocates(config(allocate_node_cidrs=True))
    assert not allocates(config(3, allocate_node_cidrs=False))
