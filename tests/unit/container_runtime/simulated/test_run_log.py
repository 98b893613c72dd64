"""The log of a run in real time: what its files take on the disk of the node."""

from datetime import UTC, datetime, timedelta

from mockube.container_runtime.simulated.run_log import RunLog
from tests.support.container_runtimes import running_machine

START = datetime(2030, 1, 1, tzinfo=UTC)
LINE = b"x" * (1 << 20) + b"\n"


def write(log, seconds, lines):
    for _ in range(lines):
        log.write(START + timedelta(seconds=seconds), 1, LINE)


def test_file_of_a_log_is_rotated_when_a_kubelet_looks_at_it():
    log = RunLog()
    write(log, 0, 15)
    full = log.disk_usage
    assert full == 15 * (len(LINE) + 40)
    write(log, 9, 1)
    assert log.disk_usage > full
    write(log, 10, 1)
    assert log.disk_usage == 17 * (len(LINE) + 40)
    write(log, 20, 1)  # The present file is small.
    write(log, 29, 12)
    write(log, 30, 1)
    assert log.disk_usage == 15 * (len(LINE) + 40)


async def test_log_of_a_container_counts_as_its_use_of_the_disk():
    async with running_machine("simulated") as machine:
        pod = await machine.start(machine.pod("echo hello; read line"))
        assert machine.runtime.disk_usage(pod).containers == {"c": len("hello\n") + 40}
