"""Which addresses of a network can be allocated."""

from ipaddress import ip_network

import pytest

from mockube.apiserver.allocation.addresses import contains


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        pytest.param("10.0.0.0/24", "10.0.0.1", True, id="the first"),
        pytest.param("10.0.0.0/24", "10.0.0.254", True, id="the last"),
        pytest.param("10.0.0.0/24", "10.0.0.0", False, id="network address"),
        pytest.param("10.0.0.0/24", "10.0.0.255", False, id="broadcast address"),
        pytest.param("10.0.0.0/24", "10.0.1.1", False, id="address of another network"),
        pytest.param("10.0.0.0/24", "fd00::1", False, id="of another family"),
        pytest.param("fd00::/120", "fd00::ff", True, id="IPv6 has no broadcast"),
        pytest.param("fd00::/120", "fd00::", False, id="but a network's own"),
    ],
)
def test_address_range_contains_address(network, address, expected):
    assert contains(ip_network(network), address) == expected
