"""Delaying queue: keys are added when they are due, on a stepped clock."""

import pytest

from mockube.controller_manager.queue.delaying import DelayingQueue


@pytest.fixture
def delaying(clock, came):
    return DelayingQueue(lambda key: came.append((clock.monotonic(), key)), clock)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param([("a", 2.0), ("b", 1.0)], [(1.0, "b"), (2.0, "a")], id="each at its time"),
        pytest.param([("a", 2.0), ("a", 1.0)], [(1.0, "a")], id="earlier than before"),
        pytest.param([("a", 1.0), ("a", 2.0)], [(1.0, "a")], id="later than before"),
        pytest.param([("a", 3.0), ("a", 1.0), ("a", 2.0)], [(1.0, "a")], id="the earliest of three"),
        pytest.param([("a", 0.0), ("b", -1.0)], [(0.0, "a"), (0.0, "b")], id="at once"),
        pytest.param([("a", 0.1), ("b", 0.1)], [(0.1, "a"), (0.1, "b")], id="two at one time"),
    ],
)
def test_keys_are_added_when_due(delaying, clock, came, asked, expected):
    for key, seconds in asked:
        delaying.add_after(key, seconds)
    clock.advance(10)
    assert came == expected
    assert len(delaying) == 0
    assert clock.next_due() is None


def test_key_can_be_delayed_again(delaying, clock, came):
    delaying.add_after("a", 1)
    clock.advance(1)
    delaying.add_after("a", 1)
    clock.advance(1)
    assert came == [(1.0, "a"), (2.0, "a")]


def test_closed_delaying_queue_drops_keys(delaying, clock, came):
    delaying.add_after("a", 1)
    delaying.close()
    delaying.add_after("b", 0)
    delaying.add_after("c", 1)
    clock.advance(10)
    assert came == []
    assert clock.next_due() is None


def test_fractional_delay_falls_due(delaying, clock, came):
    clock.advance(1e9 + 0.1)
    delaying.add_after("a", 0.005)
    clock.advance(1)
    assert [key for _, key in came] == ["a"]
