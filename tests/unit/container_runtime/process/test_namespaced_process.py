"""How the number of a process in another namespace is learnt."""

import os

import pytest

from mockube.container_runtime.process.namespaced_process import StartStatus


@pytest.mark.parametrize("writes", [[b"123\n", b"\n"], [b"\n", b"123\n"], [b"\n123\n"], [b"12", b"3\n"]])
async def test_number_of_process_is_read_before_and_after_its_own_line(writes):
    status = StartStatus()
    for data in writes:
        os.write(status.write_end, data)
    assert await status.pid() == 123
    await status.end


async def test_process_that_does_not_start_has_no_number():
    status = StartStatus()
    assert await status.pid() == 0
    await status.end
