"""Addresses of simulated nodes and pods are unique."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.controller_manager.config.networks import MAX_SIMULATED_NODES
from mockube.kubelet.addresses import (
    MAX_PODS,
    NODES_WITH_BLOCKS,
    NoAddressLeft,
    NumberedNodeNetwork,
    PodAddresses,
    matching_addresses,
    node_address,
    pod_address,
    pod_networks,
)

NODE = NumberedNodeNetwork(1)


@pytest.mark.parametrize(
    ("number", "pod", "address"),
    [
        (1, 0, "10.244.1.1"),
        (3, 253, "10.244.3.254"),
        (3, 254, "10.245.3.1"),
        (3, MAX_PODS - 1, "10.255.3.254"),
        (256, 0, "10.232.0.1"),
        (NODES_WITH_BLOCKS, 0, "10.148.255.1"),
        (NODES_WITH_BLOCKS + 1, 0, "100.64.0.1"),
        (MAX_SIMULATED_NODES, 253, "100.113.152.254"),
    ],
)
def test_pod_addresses(number, pod, address):
    assert pod_address(number, pod) == address


def test_node_addresses():
    assert [node_address(number) for number in (1, 255, 256)] == ["172.18.0.1", "172.18.0.255", "172.18.1.0"]


places = st.one_of(
    st.tuples(st.integers(1, NODES_WITH_BLOCKS), st.integers(0, MAX_PODS - 1)),
    st.tuples(st.integers(NODES_WITH_BLOCKS + 1, MAX_SIMULATED_NODES), st.integers(0, 253)),
)


@given(places, places)
def test_node_and_pod_addresses_are_unique(one, other):
    assert (pod_address(*one) == pod_address(*other)) is (one == other)


def test_pod_keeps_its_address():
    addresses = PodAddresses()
    assert addresses.allocate("a", NODE) == addresses.allocate("a", NODE) == "10.244.1.1"


def test_released_addresses_are_reused_last():
    addresses = PodAddresses()
    addresses.allocate("a", NODE)
    addresses.release("a")
    assert addresses.allocate("b", NODE) == "10.244.1.2"


def test_foreign_addresses_are_occupied():
    addresses = PodAddresses()
    addresses.record("a", "10.244.1.1")
    assert addresses.allocate("b", NODE) == "10.244.1.2"
    assert addresses.allocate("a", NODE) == "10.244.1.1"


def test_release_affects_own_address_only():
    addresses = PodAddresses()
    addresses.record("a", "10.244.1.1")
    addresses.record("b", "10.244.1.1")
    addresses.release("b")
    assert addresses.allocate("c", NODE) == "10.244.1.2"


def test_exhausted_node_has_no_address():
    addresses = PodAddresses()
    for number in range(MAX_PODS):
        addresses.allocate(str(number), NODE)
    with pytest.raises(NoAddressLeft):
        addresses.allocate("one more", NODE)
    addresses.release("7")
    assert addresses.allocate("one more", NODE) == "10.244.1.8"


def test_node_beyond_the_blocks_has_addresses_for_254_pods():
    assert [NumberedNodeNetwork(number).size for number in (1, NODES_WITH_BLOCKS + 1)] == [MAX_PODS, 254]


@pytest.mark.parametrize(
    ("given", "size", "first", "last"),
    [
        ("10.244.1.0/24", 253, "10.244.1.2", "10.244.1.254"),
        ("10.128.8.0/21", 2045, "10.128.8.2", "10.128.15.254"),
        ("10.0.0.0/30", 1, "10.0.0.2", "10.0.0.2"),
        ("fd00:10:244:1::/64", 65536, "fd00:10:244:1::2", "fd00:10:244:1::1:1"),
    ],
)
def test_addresses_are_in_pod_cidr_of_node(given, size, first, last):
    (network,) = pod_networks((given,))
    assert (network.size, network.address_at(0), network.address_at(size - 1)) == (size, first, last)


def test_single_address_range_has_no_pod_address():
    (network,) = pod_networks(("10.0.0.1/32",))
    with pytest.raises(NoAddressLeft):
        PodAddresses().allocate("a", network)


def test_addresses_of_both_families_correspond():
    networks = pod_networks(("10.244.1.0/24", "fd00:10:244:1::/64"))
    assert matching_addresses("10.244.1.7", networks) == ("10.244.1.7", "fd00:10:244:1::7")
    assert matching_addresses("192.0.2.1", networks) == ("192.0.2.1",)
