"""Event correlation: counts, aggregation and rate limits match client-go's, in both Event APIs."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.client.events.correlation import CountCorrelator, Occurrence, SeriesCorrelator, reference

START = datetime(2030, 1, 1, tzinfo=UTC)
NANOSECONDS = int(START.timestamp()) * 10**9
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "default", "name": "web", "uid": "u-web", "resourceVersion": "7"},
}


def occurrence(message="m", *, type_="Normal", reason="Why", after=0, about=WEB, **more):
    """Return an occurrence that was reported `after` this many seconds."""
    return Occurrence(
        time=START + timedelta(seconds=after),
        nanoseconds=NANOSECONDS + int(after * 10**9),
        about=reference(about),
        type=type_,
        reason=reason,
        message=message,
        **more,
    )


def write_summary(write):
    """Return the verb, message and count of an Event write."""
    if write is None:
        return None
    verb = "patch" if write.patch else "create"
    return f"{verb} {write.body['message']} x{write.body['count']}"


@pytest.fixture
def counted_events():
    return CountCorrelator("deployment-controller")


def test_event_has_upstreams_fields(counted_events):
    assert counted_events.write(occurrence("Scaled up")).body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"web.{NANOSECONDS:x}", "namespace": "default"},
        "involvedObject": {
            "kind": "Deployment",
            "namespace": "default",
            "name": "web",
            "uid": "u-web",
            "apiVersion": "apps/v1",
            "resourceVersion": "7",
        },
        "reason": "Why",
        "message": "Scaled up",
        "source": {"component": "deployment-controller"},
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
        "count": 1,
        "type": "Normal",
        "reportingComponent": "deployment-controller",
        "reportingInstance": "",
    }


def test_event_about_cluster_scoped_object_is_in_default_namespace(counted_events):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    body = counted_events.write(occurrence(about=node)).body
    assert body["metadata"]["namespace"] == "default"
    assert "namespace" not in body["involvedObject"]


def test_repeated_event_increases_count(counted_events):
    first = counted_events.write(occurrence())
    again = counted_events.write(occurrence(after=90))
    assert again.patch == {"count": 2, "lastTimestamp": "2030-01-01T00:01:30Z", "message": "m"}
    assert again.body["metadata"] == first.body["metadata"]
    assert again.body["firstTimestamp"] == "2030-01-01T00:00:00Z"


def test_different_message_or_object_is_another_event(counted_events):
    other = {**WEB, "metadata": {**WEB["metadata"], "uid": "u-other"}}
    writes = [occurrence("a"), occurrence("b"), occurrence("a", reason="Other"), occurrence("a", about=other)]
    assert [write_summary(counted_events.write(one)) for one in writes] == [
        "create a x1",
        "create b x1",
        "create a x1",
        "create a x1",
    ]


def test_similar_events_are_combined(counted_events):
    summaries = [write_summary(counted_events.write(occurrence(f"pod {number}"))) for number in range(12)]
    assert summaries[:9] == [f"create pod {number} x1" for number in range(9)]
    assert summaries[9:] == [
        "create (combined from similar events): pod 9 x1",
        "patch (combined from similar events): pod 10 x2",
        "patch (combined from similar events): pod 11 x3",
    ]


def test_combined_event_has_no_reporting_component(counted_events):
    bodies = [counted_events.write(occurrence(f"pod {number}")).body for number in range(10)]
    assert bodies[8]["reportingComponent"]
    assert [bodies[9][field] for field in ("reportingComponent", "reportingInstance")] == ["", ""]


@pytest.mark.parametrize(
    ("pause", "expected"),
    [
        pytest.param(600, "create (combined from similar events): later x1", id="not long enough"),
        pytest.param(601, "create later x1", id="long enough"),
    ],
)
def test_events_are_similar_for_ten_minutes_only(counted_events, pause, expected):
    for number in range(9):
        counted_events.write(occurrence(f"pod {number}"))
    assert write_summary(counted_events.write(occurrence("later", after=pause))) == expected


def test_event_rate_of_object_is_limited(counted_events):
    summaries = [write_summary(counted_events.write(occurrence(after=number))) for number in range(30)]
    assert summaries[24] == "patch m x25"
    assert summaries[25:] == [None] * 5
    assert write_summary(counted_events.write(occurrence(after=299))) is None
    # Events that were not written are counted, too.
    assert write_summary(counted_events.write(occurrence(after=601))) == "patch m x32"


def test_event_rate_limit_is_per_object(counted_events):
    for number in range(40):
        counted_events.write(occurrence(after=number))
    other = {**WEB, "metadata": {**WEB["metadata"], "uid": "u-other"}}
    assert write_summary(counted_events.write(occurrence(about=other, after=40))) == "create m x1"


@pytest.mark.parametrize(("limits_each_type", "expected"), [(True, "create up x1"), (False, None)])
def test_warnings_do_not_suppress_other_events(limits_each_type, expected):
    counted_events = CountCorrelator("horizontal-pod-autoscaler", limits_each_type=limits_each_type)
    for number in range(40):
        counted_events.write(occurrence(type_="Warning", after=number))
    assert write_summary(counted_events.write(occurrence("up", after=40))) == expected


# --- events.k8s.io/v1


@pytest.fixture
def series():
    return SeriesCorrelator("default-scheduler", "default-scheduler-host")


def scheduling(message="0/3 nodes are available", *, after=0, **more):
    return occurrence(message, reason="FailedScheduling", after=after, action="Scheduling", **more)


def test_scheduler_event_has_upstreams_fields(series):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "uid": "u-node"}}
    body = series.write(scheduling("x" * 2000, related=reference(node))).body
    assert body.pop("note") == "x" * 1024
    assert body.pop("regarding")["name"] == "web"
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"web.{NANOSECONDS:x}", "namespace": "default"},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "related": {"kind": "Node", "name": "node-1", "uid": "u-node", "apiVersion": "v1"},
        "type": "Normal",
    }


def test_repeated_scheduler_event_becomes_a_series(series):
    series.write(scheduling())
    again = series.write(scheduling("other words", after=10))
    expected = {"series": {"count": 2, "lastObservedTime": "2030-01-01T00:00:10.000000Z"}}
    assert again.patch == expected
    assert series.write(scheduling(after=20)) is None


def due_counts(series, after):
    return [write.patch["series"]["count"] for write in series.due_writes(START + timedelta(seconds=after))]


def test_ended_series_is_written_once_more_and_dropped(series):
    for after in (0, 10, 20):
        series.write(scheduling(after=after))
    assert due_counts(series, 360) == []
    assert due_counts(series, 400) == [3]
    assert due_counts(series, 800) == []
    assert series.write(scheduling(after=801)).patch is None


def test_running_series_is_written_every_half_hour(series):
    written = []
    for after in range(0, 3700, 60):
        series.write(scheduling(after=after))
        written += due_counts(series, after)
    assert written == [32, 62]


def test_single_event_is_dropped_without_write(series):
    series.write(scheduling())
    assert due_counts(series, 400) == []
    assert series.write(scheduling(after=401)).patch is None
