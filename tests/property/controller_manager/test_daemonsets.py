"""Updates of DaemonSets of any size stay within their limits, and complete."""

from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.apimachinery import intstr
from tests.support.controllers.daemonsets import DaemonSetHarness, rolling

posts = st.one_of(st.integers(0, 6), st.sampled_from(["0%", "10%", "34%", "100%"]))


@settings(max_examples=60, deadline=None)
@given(nodes=st.integers(1, 9), surge=posts, unavailable=posts, releases=st.integers(1, 3))
def test_daemon_set_update_respects_limits(nodes, surge, unavailable, releases):
    extra = intstr.scaled_value(surge, nodes, round_up=True)
    missing = 0 if extra else max(1, intstr.scaled_value(unavailable, nodes, round_up=True))
    daemons = DaemonSetHarness(nodes=nodes, updateStrategy=rolling(surge, unavailable))
    daemons.settle()
    for number in range(releases):
        daemons.release(f"b:{number}")
        most_missing, most_surplus = daemons.settle()
        assert most_missing <= missing
        assert most_surplus <= extra
        assert set(daemons.images.values()) == {f"b:{number}"}
        assert len(daemons.undeleted) == nodes
