"""Debouncer: frequent changes of a key are merged, on a stepped clock."""

import pytest

from mockube.controller_manager.queue.delaying import Debouncer


@pytest.fixture
def settling(clock, came):
    return Debouncer(lambda key: came.append((clock.monotonic(), key)), clock)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param([(0, "a")], [(2, "a")], id="one change"),
        pytest.param([(0, "a"), (1, "a")], [(3, "a")], id="second change restarts the delay"),
        pytest.param([(0, "a"), (2, "a")], [(2, "a"), (4, "a")], id="second change after the delay"),
        pytest.param([(at, "a") for at in range(7)], [(5, "a"), (8, "a")], id="continuous changes"),
        pytest.param([(0, "a"), (1, "b"), (2, "b")], [(2, "a"), (4, "b")], id="separate keys"),
    ],
)
def test_debounced_key_is_added_after_quiet_or_maximum_delay(settling, clock, came, changes, expected):
    for at, key in changes:
        clock.advance(at - clock.monotonic())
        settling.add_after_quiet(key, quiet=2, max_delay=5)
    clock.advance(10)
    assert came == expected
    assert clock.next_due() is None


def test_closed_debouncer_adds_nothing(settling, clock, came):
    settling.add_after_quiet("a", quiet=2, max_delay=5)
    settling.close()
    clock.advance(10)
    assert came == []
    assert clock.next_due() is None
