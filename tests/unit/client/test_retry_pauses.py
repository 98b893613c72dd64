import pytest

from mockube.client.flowcontrol import Backoff
from mockube.component_base.clock import SteppedClock


class ZeroRandom:
    """A random source that returns zero bytes, so that no jitter is added."""

    def bytes(self, count):
        return bytes(count)


class MaximalRandom:
    def bytes(self, count):
        return b"\xff" * count


def test_backoff_doubles_to_maximum():
    pauses = Backoff(SteppedClock(), ZeroRandom())
    assert [pauses.next() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_jitter_doubles_backoff_at_most():
    assert Backoff(SteppedClock(), MaximalRandom()).next() == pytest.approx(1.6)


def test_backoff_resets_after_time_without_failures():
    clock = SteppedClock()
    pauses = Backoff(clock, ZeroRandom())
    assert [pauses.next(), pauses.next()] == [0.8, 1.6]
    clock.advance(119.0)
    assert pauses.next() == 3.2
    clock.advance(120.0)
    assert pauses.next() == 0.8
