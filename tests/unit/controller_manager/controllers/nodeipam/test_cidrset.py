"""Node CIDRs are allocated inside the range, and no CIDR is allocated twice."""

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.controller_manager.config.networks import NodeRange
from mockube.controller_manager.controllers.nodeipam.cidrset import CIDROutOfRange, CidrSet, RangeFull


def cidr_set(text, mask):
    return CidrSet(NodeRange(ip_network(text), mask))


def allocate_many(one, count):
    return [str(one.allocate()) for _ in range(count)]


@pytest.mark.parametrize(
    ("network", "mask", "first"),
    [
        ("10.244.0.0/16", 24, ["10.244.0.0/24", "10.244.1.0/24"]),
        ("10.128.0.0/9", 21, ["10.128.0.0/21", "10.128.8.0/21"]),
        ("fd00::/48", 64, ["fd00::/64", "fd00:0:0:1::/64"]),
        ("fd00::/110", 120, ["fd00::/120", "fd00::100/120"]),
    ],
)
def test_cidrs_are_allocated_in_order(network, mask, first):
    assert allocate_many(cidr_set(network, mask), 2) == first


def test_released_cidr_is_allocated_last():
    one = cidr_set("10.0.0.0/22", 24)
    allocate_many(one, 2)
    one.release(ip_network("10.0.0.0/24"))
    assert allocate_many(one, 3) == ["10.0.2.0/24", "10.0.3.0/24", "10.0.0.0/24"]
    with pytest.raises(RangeFull, match="no remaining CIDRs left to allocate in the accepted range"):
        one.allocate()


@pytest.mark.parametrize(
    ("occupied", "left"),
    [
        ("10.0.1.0/24", ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"]),
        ("10.0.1.128/25", ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"]),
        ("10.0.2.0/23", ["10.0.0.0/24", "10.0.1.0/24"]),
        ("10.0.0.0/8", []),
    ],
)
def test_occupied_cidr_is_not_allocated(occupied, left):
    one = cidr_set("10.0.0.0/22", 24)
    one.occupy(ip_network(occupied))
    one.occupy(ip_network(occupied))
    assert allocate_many(one, len(left)) == left
    with pytest.raises(RangeFull):
        one.allocate()


@pytest.mark.parametrize("stranger", ["10.1.0.0/24", "fd00::/64"])
def test_cidr_of_other_network_is_refused(stranger):
    with pytest.raises(CIDROutOfRange, match=r"is out the range of cluster cidr 10\.0\.0\.0/22"):
        cidr_set("10.0.0.0/22", 24).occupy(ip_network(stranger))


@given(st.lists(st.one_of(st.none(), st.integers(0, 7)), max_size=40))
def test_no_cidr_is_allocated_twice(steps):
    """The step None allocates a CIDR; a number releases the CIDR with that number."""
    one, held = cidr_set("10.0.0.0/21", 24), set()
    for step in steps:
        if step is not None:
            network = ip_network(f"10.0.{step}.0/24")
            one.release(network)
            held.discard(network)
        elif len(held) == 8:
            with pytest.raises(RangeFull):
                one.allocate()
        else:
            network = one.allocate()
            assert network not in held
            held.add(network)
