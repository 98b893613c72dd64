"""The logs that crictl reads: part by part, the last lines, and those of a run that goes on."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.container_runtime.logs import LogLine
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.container_runtime.runs import ContainerRun
from mockube.kubelet.node_machine import log_readers
from mockube.kubelet.node_machine.log_readers import LogReader, LogReaders

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
POD = {
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c"}]},
    "status": {
        "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
    },
}
RUN = ContainerRun(restarts=0, started=BEGIN, finished=None)


class Source:
    """A log with a line in each second."""

    due = None

    def __init__(self):
        self.second = 0
        self.is_closed = False

    def is_behind(self, until):
        return BEGIN + timedelta(seconds=self.second) <= until

    def advance(self, _):
        line = LogLine(BEGIN + timedelta(seconds=self.second), 1, f"{self.second}\n".encode())
        self.second += 1
        return iter([line])

    def close(self):
        self.is_closed = True


async def texts(reader, seconds, pod=POD):
    return [int(line.text) for line in await reader.read(BEGIN + timedelta(seconds=seconds), pod)]


async def test_long_log_is_read_in_parts(monkeypatch):
    monkeypatch.setattr(log_readers, "MAX_LINES", 3)
    reader = LogReader(Source(), POD, "c", RUN)
    assert (await texts(reader, 4), reader.has_more) == ([0, 1, 2], True)
    assert (await texts(reader, 4), reader.has_more, reader.has_ended) == ([3, 4], False, False)
    assert await texts(reader, 6) == [5, 6]


async def test_tail_is_read_once():
    reader = LogReader(Source(), POD, "c", RUN, tail=2)
    assert await texts(reader, 9) == [8, 9]
    assert await texts(reader, 10) == [10]


async def test_lines_before_a_time_are_left_out():
    reader = LogReader(Source(), POD, "c", RUN, since=BEGIN + timedelta(seconds=3))
    assert await texts(reader, 4) == [3, 4]


async def test_log_of_a_deleted_pod_ends():
    reader = LogReader(Source(), POD, "c", RUN)
    await texts(reader, 1, None)
    assert reader.has_ended


async def test_log_that_was_read_longest_ago_is_closed():
    readers, sources = LogReaders(), [Source() for _ in range(log_readers.MAX_READERS + 1)]
    first = readers.add(LogReader(sources[0], POD, "c", RUN))
    for source in sources[1:]:
        readers.add(LogReader(source, POD, "c", RUN))
    assert [source.is_closed for source in sources] == [True] + [False] * log_readers.MAX_READERS
    with pytest.raises(ServiceFailed, match="too many others"):
        readers.find(first)
