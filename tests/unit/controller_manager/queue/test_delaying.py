"""Keys that come back later, on a stepped clock."""

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
def test_keys_come_back_when_they_are_due(delaying, clock, came, asked, expected):
    for key, seconds in asked:
        delaying.add_after(key, seconds)
    clock.advance(10)
    assert came == expected
    assert len(delaying) == 0
    assert clock.next_due() is None


def test_a_key_can_come_back_again(delaying, clock, came):
    delaying.add_after("a", 1)
    clock.advance(1)
    delaying.add_after("a", 1)
    clock.advance(1)
    assert came == [(1.0, "a"), (2.0, "a")]


def test_a_closed_queue_forgets_and_takes_nothing(delaying, clock, came):
    delaying.add_after("a", 1)
    delaying.close()
    delaying.add_after("b", 0)
    delaying.add_after("c", 1)
    clock.advance(10)
    assert came == []
    assert clock.next_due() is None


def test_a_delay_that_is_no_round_number_falls_due_all_the_same(delaying, clock, came):
    clock.advance(1e9 + 0.1)
    delaying.add_after("a", 0.005)
    clock.advance(1)
    assert [key for _, key in came] == ["a"]
