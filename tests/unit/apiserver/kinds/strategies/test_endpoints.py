"""Endpoints are brought into one form, however the client grouped them."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.kinds.core.endpoints import repack
from mockube.apiserver.kinds.registry import STRATEGIES
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.requests import request

A, B = {"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}
HTTP, DNS = {"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        pytest.param(
            [{"addresses": [B, A], "ports": [HTTP]}], [{"addresses": [A, B], "ports": [HTTP]}], id="in order"
        ),
        pytest.param(
            [{"addresses": [A], "ports": [HTTP]}, {"addresses": [B], "ports": [HTTP]}],
            [{"addresses": [A, B], "ports": [HTTP]}],
            id="one port in two subsets",
        ),
        pytest.param(
            [{"addresses": [A], "ports": [HTTP]}, {"addresses": [A], "ports": [DNS]}],
            [{"addresses": [A], "ports": [HTTP, DNS]}],
            id="one address in two subsets",
        ),
        pytest.param(
            [{"addresses": [A], "notReadyAddresses": [A, B], "ports": [HTTP]}],
            [{"notReadyAddresses": [A, B], "ports": [HTTP]}],
            id="not ready wins",
        ),
        pytest.param([{"addresses": [A]}], [{"addresses": [A]}], id="no ports"),
        pytest.param([{"ports": [HTTP]}], [], id="no addresses"),
    ],
)
def test_repack(subsets, expected):
    assert repack(subsets) == expected
    assert repack(repack(subsets)) == repack(subsets)


def test_a_slices_old_topology_can_no_longer_be_written():
    slices = STRATEGIES[GroupResource("discovery.k8s.io", "endpointslices")]
    endpoint = {"addresses": ["10.0.0.1"], "deprecatedTopology": {"zone": "a"}}
    new = {"endpoints": [endpoint]}
    slices.prepare_update[MAIN](new, {"endpoints": [endpoint]}, request())
    assert new == {"endpoints": [endpoint]}
    slices.prepare_update[MAIN](new, {"endpoints": []}, request())
    assert new == {"endpoints": [{"addresses": ["10.0.0.1"]}]}
