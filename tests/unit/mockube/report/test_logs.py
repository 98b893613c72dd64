"""The logs of a report: bounded, and a problem with one loses no other."""

import asyncio
from contextlib import asynccontextmanager

from mockube.client.wire import Unreachable
from mockube.report.candidates import Candidate
from mockube.report.collection import MAX_LOG_LINE, _read_logs
from mockube.report.recording import ObjectIdentity
from tests.support.reports import tree_of


class Stream:
    async def read(self):
        return b"short\n" + b"x" * 10_000


class Logs:
    """A client whose server does not respond for one container."""

    @asynccontextmanager
    async def download(self, path, *, timeout_seconds):
        assert "limitBytes=" in path
        assert timeout_seconds
        if "container=held" in path:
            raise Unreachable("no response")
        yield Stream()


def test_logs_are_bounded_and_a_problem_with_one_loses_no_other():
    statuses = [{"name": name, "state": {"running": {}}, "ready": False} for name in ("held", "long")]
    pod = tree_of("Pod", "web", status={"containerStatuses": statuses})
    chosen = [Candidate(identity=ObjectIdentity.of("pods", pod), tree=pod)]
    (held, long), omitted = asyncio.run(_read_logs(Logs(), chosen))
    assert (held.problem, held.lines) == ("no response", ())
    assert [len(line) for line in long.lines] == [5, MAX_LOG_LINE]
    assert omitted == 0
