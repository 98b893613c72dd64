import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.controller_manager.client.flowcontrol import Backoff


class Never:
    """Randomness that adds nothing."""

    def bytes(self, count):
        return bytes(count)


class Always:
    def bytes(self, count):
        return b"\xff" * count


def test_each_is_twice_as_long_up_to_a_limit():
    pauses = Backoff(SteppedClock(), Never())
    assert [pauses.next() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_chance_makes_one_up_to_twice_as_long():
    assert Backoff(SteppedClock(), Always()).next() == pytest.approx(1.6)


def test_after_a_long_calm_they_begin_anew():
    clock = SteppedClock()
    pauses = Backoff(clock, Never())
    assert [pauses.next(), pauses.next()] == [0.8, 1.6]
    clock.advance(119.0)
    assert pauses.next() == 3.2
    clock.advance(120.0)
    assert pauses.next() == 0.8
