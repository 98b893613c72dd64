"""How often simulated nodes renew their Leases."""

from datetime import timedelta

import pytest

from mockube.controller_manager.kubelet.registration import renew_interval


@pytest.mark.parametrize(
    ("nodes", "grace_period", "seconds"),
    [
        pytest.param(1, 50, 10, id="as a kubelet"),
        pytest.param(1_000, 50, 10, id="100 renewals a second"),
        pytest.param(2_000, 50, 20, id="less often, so that there are no more"),
        pytest.param(15_000, 50, 25, id="twice within the grace period"),
        pytest.param(15_000, 12, 10, id="never more often than a kubelet"),
    ],
)
def test_many_nodes_renew_less_often(nodes, grace_period, seconds):
    assert renew_interval(nodes, grace_period) == timedelta(seconds=seconds)
