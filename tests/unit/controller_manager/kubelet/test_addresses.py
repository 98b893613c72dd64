"""The addresses of simulated nodes and pods: nobody shares one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.controller_manager.kubelet.addresses import (
    MOST_NODES,
    MOST_PODS,
    NoAddressLeft,
    PodAddresses,
    node_address,
    pod_address,
)


@pytest.mark.parametrize(
    ("number", "pod", "address"),
    [
        (1, 0, "10.244.1.1"),
        (3, 253, "10.244.3.254"),
        (3, 254, "10.245.3.1"),
        (3, MOST_PODS - 1, "10.255.3.254"),
        (256, 0, "10.232.0.1"),
        (MOST_NODES, 0, "10.148.255.1"),
    ],
)
def test_pod_addresses(number, pod, address):
    assert pod_address(number, pod) == address


def test_node_addresses():
    assert [node_address(number) for number in (1, 255, 256)] == ["10.128.0.1", "10.128.0.255", "10.128.1.0"]


places = st.tuples(st.integers(1, MOST_NODES), st.integers(0, MOST_PODS - 1))


@given(places, places)
def test_different_places_have_different_addresses(one, other):
    assert (pod_address(*one) == pod_address(*other)) is (one == other)


def test_a_pod_keeps_its_address():
    addresses = PodAddresses()
    assert addresses.of("a", 1) == addresses.of("a", 1) == "10.244.1.1"


def test_addresses_that_were_given_back_come_last():
    addresses = PodAddresses()
    addresses.of("a", 1)
    addresses.release("a")
    assert addresses.of("b", 1) == "10.244.1.2"


def test_addresses_that_others_gave_are_taken():
    addresses = PodAddresses()
    addresses.note("a", "10.244.1.1")
    assert addresses.of("b", 1) == "10.244.1.2"
    assert addresses.of("a", 1) == "10.244.1.1"


def test_one_pod_gives_back_only_its_own():
    addresses = PodAddresses()
    addresses.note("a", "10.244.1.1")
    addresses.note("b", "10.244.1.1")
    addresses.release("b")
    assert addresses.of("c", 1) == "10.244.1.2"


def test_a_node_runs_out_of_addresses():
    addresses = PodAddresses()
    for number in range(MOST_PODS):
        addresses.of(str(number), 1)
    with pytest.raises(NoAddressLeft):
        addresses.of("one more", 1)
    addresses.release("7")
    assert addresses.of("one more", 1) == "10.244.1.8"
