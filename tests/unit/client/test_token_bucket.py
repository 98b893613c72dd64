from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.client.flowcontrol import Rate, TokenBucket
from mockube.component_base.clock import SteppedClock


def test_burst_passes_and_rest_is_spread():
    bucket = TokenBucket(Rate(qps=10.0, burst=2), SteppedClock())
    assert [bucket.take() for _ in range(4)] == [0.0, 0.0, 0.1, 0.2]


def test_bucket_refills_up_to_burst():
    clock = SteppedClock()
    bucket = TokenBucket(Rate(qps=10.0, burst=2), clock)
    bucket.take()
    clock.advance(60.0)
    assert [bucket.take() for _ in range(3)] == [0.0, 0.0, 0.1]


@settings(max_examples=50)
@given(steps=st.lists(st.floats(0, 3, allow_nan=False), max_size=60))
def test_token_bucket_never_exceeds_burst_and_rate(steps):
    clock = SteppedClock()
    rate = Rate(qps=5.0, burst=3)
    bucket = TokenBucket(rate, clock)
    through = []
    for step in steps:
        clock.advance(step)
        through.append(clock.monotonic() + bucket.take())
    assert through == sorted(through)
    for first, start in enumerate(through):
        for last in range(first, len(through)):
            assert last - first + 1 <= rate.burst + rate.qps * (through[last] - start) + 1e-6
