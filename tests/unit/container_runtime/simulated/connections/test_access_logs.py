"""Servers of known images log a line for each request in their format."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.images.table import PortBehavior
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.connections.access_logs import AccessLogs
from mockube.container_runtime.simulated.connections.port_answers import HttpAnswer, ReceivedRequest
from tests.support.images import IMAGES

POD = {
    "metadata": {"name": "p", "uid": "u"},
    "status": {"containerStatuses": [{"name": "c", "restartCount": 0, "state": {"running": {}}}]},
}
CONTAINER = {"name": "c"}
REQUEST = ReceivedRequest(
    method="GET", path="/a?b", client="10.244.0.6:40000", headers={"host": "web", "user-agent": "curl/8"}
)


class StartLog:
    """The log of a server's start: one line."""

    due = None

    def __init__(self):
        self.lines = [b"start\n"]

    def is_behind(self, _):
        return bool(self.lines)

    def advance(self, _):
        lines, self.lines = self.lines, []
        return iter(lines)

    def close(self):
        pass


def lines_of(source, clock):
    return [getattr(line, "text", line).decode() for line in source.advance(clock.now())]


@pytest.mark.parametrize(
    ("behavior", "answer", "expected"),
    [
        (
            IMAGES.behavior_of_image("nginx").ports[80],
            HttpAnswer(body=b"hello"),
            ['10.244.0.6 - - [01/Jan/2030:00:00:00 +0000] "GET /a?b HTTP/1.1" 200 5 "-" "curl/8" "-"\n'],
        ),
        (
            IMAGES.behavior_of_image("nginx").ports[80],
            HttpAnswer(status=404, body=b"no"),
            [
                (
                    '2030/01/01 00:00:00 [error] 30#30: *1 open() "/usr/share/nginx/html/a" failed (2: No such file or directory), client: '
                    '10.244.0.6, server: localhost, request: "GET /a?b HTTP/1.1", host: "web"\n'
                ),
                '10.244.0.6 - - [01/Jan/2030:00:00:00 +0000] "GET /a?b HTTP/1.1" 404 2 "-" "curl/8" "-"\n',
            ],
        ),
        (
            IMAGES.behavior_of_image("bitnami/nginx").ports[8080],
            HttpAnswer(),
            ['10.244.0.6 - - [01/Jan/2030:00:00:00 +0000] "GET /a?b HTTP/1.1" 200 0 "-" "curl/8"\n'],
        ),
        (
            IMAGES.behavior_of_image("httpd").ports[80],
            HttpAnswer(status=304),
            ['10.244.0.6 - - [01/Jan/2030:00:00:00 +0000] "GET /a?b HTTP/1.1" 304 -\n'],
        ),
        (
            PortBehavior(access_log="python"),
            HttpAnswer(),
            ['10.244.0.6 - - [01/Jan/2030 00:00:00] "GET /a?b HTTP/1.1" 200 -\n'],
        ),
    ],
)
def test_line_of_a_request(behavior, answer, expected):
    clock, woken = SteppedClock(), []
    logs = AccessLogs(Records(), clock, woken.append)
    logs.note(POD, CONTAINER, behavior, REQUEST, answer)
    source = logs.with_requests(StartLog(), POD, "c", 0)
    assert lines_of(source, clock) == ["start\n", *expected]
    assert woken == [POD]
    assert not source.is_behind(clock.now())


def test_follower_reads_new_lines_and_only_the_latest_are_kept():
    clock, records = SteppedClock(), Records()
    logs = AccessLogs(records, clock, lambda _: None)
    behavior = IMAGES.behavior_of_image("httpd").ports[80]
    source = logs.with_requests(StartLog(), POD, "c", 0)
    for _ in range(1500):
        logs.note(POD, CONTAINER, behavior, REQUEST, HttpAnswer())
    assert len(lines_of(source, clock)) == 1 + 1000
    logs.note(POD, CONTAINER, behavior, REQUEST, HttpAnswer())
    assert source.is_behind(clock.now())
    assert len(lines_of(source, clock)) == 1
    records.remove("u")
    assert not source.is_behind(clock.now())


def test_runs_have_logs_of_their_own():
    clock = SteppedClock()
    logs = AccessLogs(Records(), clock, lambda _: None)
    logs.note(POD, CONTAINER, IMAGES.behavior_of_image("httpd").ports[80], REQUEST, HttpAnswer())
    source = logs.with_requests(StartLog(), POD, "c", 1)
    assert lines_of(source, clock) == ["start\n"]


def test_lines_take_space_on_the_disk_until_they_are_rotated():
    clock, records, noted = SteppedClock(), Records(), []
    logs = AccessLogs(records, clock, noted.append)
    text = "x" * 9_999
    logs.write(POD, "c", [(1, text)] * 2)
    assert dict(logs.disk_usage("u")) == {"c": 2 * (10_000 + 40)}
    for _ in range(3):
        logs.write(POD, "c", [(1, text)] * 1_100)
        clock.advance(20)
    assert dict(logs.disk_usage("u"))["c"] == 2_200 * (10_000 + 40)
    records.remove("u")
    assert (dict(logs.disk_usage("u")), noted) == ({}, [POD] * 4)
