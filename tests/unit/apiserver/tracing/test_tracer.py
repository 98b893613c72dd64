import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.tracing import spans
from mockube.apiserver.tracing.spans import MAX_EVENTS, SpanContext
from mockube.apiserver.tracing.tracer import Tracer, remote_context
from mockube.component_base.clock import SteppedClock

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.fixture
def exported():
    return []


@pytest.fixture
def clock():
    return SteppedClock()


def make_tracer(exported, clock, per_million=1_000_000):
    return Tracer(exported.append, clock=clock, random=SeededRandom(), samples_per_million=per_million)


@pytest.mark.parametrize(
    "header",
    [
        "",
        PARENT.upper(),
        f"00-{TRACE}-{SPAN}",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-04",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}0-{SPAN}-01",
        f"{PARENT}\n",
    ],
)
def test_invalid_traceparent_is_ignored(header):
    assert remote_context({"traceparent": header}) is None


def test_traceparent_of_later_version_may_have_more_fields():
    context = remote_context({"traceparent": f"01-{TRACE}-{SPAN}-01-more"})
    assert context == SpanContext(bytes.fromhex(TRACE), bytes.fromhex(SPAN), 1)


def test_traceparent_is_sent_as_it_was_received_with_new_span(exported, clock):
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-03", "tracestate": "a=b"}
    span = make_tracer(exported, clock).root("x", scope="s", remote=remote_context(headers), baggage="k=v")
    with span:
        sent = spans.outgoing_headers()
    assert sent == {
        "Traceparent": f"00-{TRACE}-{span.context.span_id.hex()}-03",
        "Tracestate": "a=b",
        "Baggage": "k=v",
    }
    assert span.context.span_id.hex() != SPAN


def test_no_header_is_sent_outside_of_span():
    assert spans.outgoing_headers() == {}


@pytest.mark.parametrize(
    ("per_million", "low", "high"), [(0, 0, 0), (1_000_000, 1000, 1000), (500_000, 400, 600)]
)
def test_rate_decides_how_many_new_traces_are_sampled(exported, clock, per_million, low, high):
    tracer = make_tracer(exported, clock, per_million)
    for _ in range(1000):
        tracer.root("x", scope="s").end()
    assert low <= len(exported) <= high


@pytest.mark.parametrize(("flags", "count"), [("00", 0), ("01", 1)])
def test_server_that_began_trace_decides_whether_it_is_sampled(exported, clock, flags, count):
    tracer = make_tracer(exported, clock, per_million=0 if count else 1_000_000)
    tracer.root("x", scope="s", remote=remote_context({"traceparent": f"00-{TRACE}-{SPAN}-{flags}"})).end()
    assert len(exported) == count


def test_children_of_unsampled_span_are_not_recorded(exported, clock):
    with make_tracer(exported, clock, 0).root("x", scope="s") as root:
        assert spans.recording() is None
        with spans.child("y", lambda: pytest.fail("the attributes are not needed")) as child:
            child.add_event("z")
        assert spans.outgoing_headers()["Traceparent"].endswith("-00")
    root.end()
    assert not exported


def test_child_is_within_its_parent(exported, clock):
    with make_tracer(exported, clock).root("parent", scope="s") as parent:
        clock.advance(1)
        with spans.child("child", lambda: {"a": 1}) as child:
            clock.advance(1)
            child.add_event("event")
        clock.advance(1)
    assert exported == [child, parent]
    assert child.parent == parent.context
    assert [each - parent.started for each in (child.started, child.events[0].time, child.ended, parent.ended)] == [
        10**9, 2 * 10**9, 2 * 10**9, 3 * 10**9,
    ]  # fmt: skip
    assert parent.started == clock.now().timestamp() * 10**9 - 3 * 10**9


def test_span_ends_once(exported, clock):
    with make_tracer(exported, clock).root("x", scope="s") as span:
        span.end()
    assert exported == [span]


def test_events_of_span_are_limited(exported, clock):
    span = make_tracer(exported, clock).root("x", scope="s")
    for number in range(MAX_EVENTS + 1):
        span.add_event(str(number))
    assert len(span.events) == MAX_EVENTS
