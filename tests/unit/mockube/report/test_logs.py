"""The logs of a report: bounded, and a problem with one loses no other."""

import asyncio
from contextlib import asynccontextmanager

from mockube.apimachinery.secrets import MASK
from mockube.client.wire import Unreachable
from mockube.report.candidates import Candidate
from mockube.report.collection import MAX_LOG, MAX_LOG_LINE, _read_logs, without_secrets
from mockube.report.recording import ObjectIdentity
from tests.support.reports import recording, tree_of

SECRET = {**tree_of("Secret", "db"), "data": {"password": "aHVudGVyMi1zZWNyZXQ="}}
LONG = b"x" * (MAX_LOG_LINE - 8) + b"hunter2-secret" + b"x" * 10_000


class Stream:
    def __init__(self, content):
        self.content = content

    async def read(self):
        return self.content


class Logs:
    """A client whose server does not respond for one container."""

    def __init__(self, content):
        self.content = content

    @asynccontextmanager
    async def download(self, path, *, timeout_seconds):
        assert "limitBytes=" in path
        assert timeout_seconds
        if "container=held" in path:
            raise Unreachable("no response")
        yield Stream(self.content)


def read_logs(content):
    statuses = [{"name": name, "state": {"running": {}}, "ready": False} for name in ("held", "long")]
    pod = tree_of("Pod", "web", status={"containerStatuses": statuses})
    chosen = [Candidate(identity=ObjectIdentity.of("pods", pod), tree=pod)]
    logs, omitted = asyncio.run(_read_logs(Logs(content), chosen))
    assert omitted == 0
    return without_secrets(recording(objects={"secrets": [SECRET]}, logs=logs)).logs


def test_logs_are_bounded_and_a_problem_with_one_loses_no_other():
    held, long = read_logs(b"short\n" + b"x" * 10_000)
    assert (held.problem, [*held.lines]) == ("no response", [])
    assert [len(line) for line in long.lines] == [5, MAX_LOG_LINE]


def test_value_where_a_line_is_cut_is_masked():
    _, long = read_logs(LONG)
    assert long.lines == ["x" * (MAX_LOG_LINE - 8) + MASK[:8]]


def test_line_that_may_end_within_a_value_is_left_out():
    content = b"short\n" + b"x" * MAX_LOG
    assert read_logs(content[:MAX_LOG])[1].lines == ["short"]
    assert read_logs(content[6 : MAX_LOG + 6])[1].problem == "its line is too long"
