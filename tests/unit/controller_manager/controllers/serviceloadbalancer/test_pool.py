"""Load balancer addresses are unique, and requested addresses are allocated."""

from ipaddress import ip_network

import pytest

from mockube.controller_manager.controllers.serviceloadbalancer.controller import (
    AddressInUse,
    AddressPool,
    AddressPoolExhausted,
)


@pytest.fixture
def pool():
    return AddressPool(ip_network("198.18.0.0/29"))


def test_addresses_are_allocated_in_order_until_exhausted(pool):
    assert [pool.allocate(uid, "") for uid in "abaefcd"] == [
        *("198.18.0.1", "198.18.0.2", "198.18.0.1", "198.18.0.3", "198.18.0.4", "198.18.0.5", "198.18.0.6")
    ]
    with pytest.raises(AddressPoolExhausted, match="no address of 198"):
        pool.allocate("g", "")
    pool.release("b")
    assert pool.allocate("g", "") == "198.18.0.2"


def test_released_address_is_allocated_last(pool):
    pool.allocate("a", "")
    pool.release("a")
    assert pool.allocate("b", "") == "198.18.0.2"


def test_existing_addresses_are_kept(pool):
    pool.record("a", "198.18.0.1")
    pool.record("b", "198.18.0.1")
    assert [pool.allocate(uid, "") for uid in "abc"] == ["198.18.0.1", "198.18.0.2", "198.18.0.3"]


def test_requested_address_is_allocated(pool):
    pool.allocate("a", "")
    assert pool.allocate("a", "192.0.2.7") == "192.0.2.7"
    assert pool.allocate("a", "") == "192.0.2.7"
    with pytest.raises(AddressInUse, match="is the address of another service"):
        pool.allocate("b", "192.0.2.7")
    with pytest.raises(AddressInUse, match="somewhere is not an IP address"):
        pool.allocate("b", "somewhere")
    assert "b" not in pool
    assert pool.allocate("b", "198.18.0.1") == "198.18.0.1", "the first address of a is free"


def test_smallest_ranges_reserve_no_address():
    small = AddressPool(ip_network("198.18.0.4/31"))
    assert [small.allocate(uid, "") for uid in "ab"] == ["198.18.0.4", "198.18.0.5"]
    one = AddressPool(ip_network("198.18.0.1/32"))
    assert one.allocate("a", "") == "198.18.0.1"
    with pytest.raises(AddressPoolExhausted):
        one.allocate("b", "")


def test_address_of_this_machine_is_allocated_within_the_range_only(pool):
    with pytest.raises(
        AddressInUse, match=r"127.0.0.1 is an address of this machine, and not one of 198.18.0.0/"
    ):
        pool.allocate("a", "127.0.0.1")
    for address in ("0.0.0.0", "::", "224.0.0.1"):
        with pytest.raises(AddressInUse, match="is no address of one server"):
            pool.allocate("a", address)
    own = AddressPool(ip_network("127.10.0.0/24"))
    assert own.allocate("a", "127.10.0.9") == "127.10.0.9"
    with pytest.raises(AddressInUse):
        own.allocate("a", "127.11.0.9")
    assert own.allocate("a", "") == "127.10.0.9"
