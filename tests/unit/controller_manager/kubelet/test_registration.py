"""How often simulated nodes renew their Leases."""

from datetime import timedelta

import pytest

from mockube.controller_manager.kubelet.registration import NodeRegistration, renew_interval


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


class ActiveNodes:
    """A registry in which every kubelet is active."""

    def active_node(self, name):
        return {"metadata": {"name": name}}


class PatchCounter:
    """A client that counts patches."""

    def __init__(self):
        self.total = 0

    async def patch(self, *_):
        self.total += 1


async def test_lease_of_many_nodes_is_renewed_after_their_interval(clock):
    client = PatchCounter()
    registration = NodeRegistration(client, ActiveNodes(), clock=clock, grace_period=50)
    for number in range(2_000):
        await registration.heartbeat(f"node-{number}")
    clock.advance(19)
    assert await registration.heartbeat("node-0") == timedelta(seconds=1)
    assert client.total == 2_000
    clock.advance(1)
    assert await registration.heartbeat("node-0") == timedelta(seconds=20)
    assert client.total == 2_001
