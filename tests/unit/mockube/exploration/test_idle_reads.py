import pytest

from mockube.component_base.clock import SteppedClock
from mockube.exploration.idle_reads import IdleReads, idle_reads
from mockube.exploration.trace import Trace

OPERATOR = "system:serviceaccount:default:operator"


def read(verb="list", resource="configmaps", **status):
    spec = {"verb": verb, "resource": resource, "namespace": "default", "name": "a"}
    return {"spec": spec, "status": {"code": 200, **status}}


def trace_with(*requests):
    """Return a trace that was quiet for a second before the requests came, one in a second."""
    clock = SteppedClock()
    trace = Trace(clock=clock.real, operator=OPERATOR, objects={}, began=clock.real.monotonic())
    trace.last_activity = trace.began
    for request in requests:
        clock.advance(1)
        trace.add_request(request)
    return trace


@pytest.mark.parametrize(
    ("seconds", "ages", "has_no_pause"),
    [
        pytest.param(5.0, [each / 100 for each in range(500)], True, id="a hundred a second"),
        pytest.param(0.15, [0.01, 0.05, 0.08, 0.12], True, id="some in a short time"),
        pytest.param(0.15, [0.01, 0.05, 0.12], False, id="three reads"),
        pytest.param(5.0, [each / 10 for each in range(50)], False, id="ten a second"),
        pytest.param(1.5, [0.6 + each / 100 for each in range(90)], False, id="many, and then a pause"),
        pytest.param(0.0, [], False, id="none"),
    ],
)
def test_reads_without_a_pause(seconds, ages, has_no_pause):
    reads = IdleReads(seconds=seconds, ages=ages, resources=[("get", "pods")] * len(ages))
    assert reads.have_no_pause(20.0) is has_no_pause


@pytest.mark.parametrize("first", [0.005, 0.007, 0.01])
def test_delays_that_double_are_a_pause_after_a_while(first):
    tries = [first * 2**number for number in range(12)]
    is_seen = [
        IdleReads(
            seconds=now, ages=[now - each for each in tries if each <= now for _ in range(5)], resources=[]
        ).have_no_pause(20.0)
        for now in (2.0, 3.0, 4.0, 5.0)
    ]
    assert not all(is_seen)


def test_reads_of_objects_count_since_the_last_write():
    trace = trace_with(read("update"), read("get"), read("list", "pods"), read("get"))
    reads = idle_reads(trace)
    assert (reads.seconds, reads.ages) == (3.0, [0.0, 1.0, 2.0])
    assert reads.most_frequent() == ("get", "configmaps", 2)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(read("get", "leases.coordination.k8s.io"), id="of a Lease"),
        pytest.param(read("get", ""), id="of a page"),
        pytest.param(read(answeredByFault=True), id="answered by a fault"),
    ],
)
def test_other_reads_do_not_count(request_):
    assert idle_reads(trace_with(request_)).ages == []


def test_reads_while_something_is_hidden_do_not_count():
    trace = trace_with()
    trace.hide("fault-1", "configmaps", 1)
    trace.add_request(read())
    assert idle_reads(trace).ages == []
