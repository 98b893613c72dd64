"""Rate limiter: the delay of a failed key matches client-go's."""

import pytest

from mockube.apimachinery.clock import SteppedClock
from mockube.controller_manager.queue.rate_limiting import Backoff, RateLimiter


def test_each_failure_doubles_backoff_to_maximum():
    backoff = Backoff()
    waits = [backoff.fail("a") for _ in range(100)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[17] == pytest.approx(655.36)
    assert waits[18:] == [1000.0] * 82
    assert backoff.fail("b") == 0.005


def test_forget_resets_backoff():
    backoff = Backoff()
    backoff.fail("a")
    backoff.forget("a")
    assert backoff.fail("a") == 0.005


def test_many_keys_share_token_bucket():
    clock = SteppedClock()
    limiter = RateLimiter(clock)
    waits = [limiter.when(number) for number in range(103)]
    assert waits[:100] == [0.005] * 100
    assert waits[100:] == pytest.approx([0.1, 0.2, 0.3])
    clock.advance(0.3)
    assert limiter.when("later") == pytest.approx(0.1)


def test_longer_of_both_delays_applies():
    limiter = RateLimiter(SteppedClock())
    assert [limiter.when("a") for _ in range(10)][-1] == pytest.approx(2.56)
