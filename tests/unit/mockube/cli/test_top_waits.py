"""What `mockube top` does while it waits."""

import asyncio

import pytest

from mockube.cli.top import wait_unless_ended
from mockube.top.terminal import Screen


@pytest.fixture
async def screen():
    return Screen(asyncio.get_running_loop())


async def test_work_that_ends_is_waited_for(screen):
    done = []

    async def work():
        done.append(1)

    assert await wait_unless_ended(screen, work(), lambda: None)
    assert done == [1]


async def test_user_quits_while_the_server_hangs(screen):
    painted = []

    async def hang():
        screen.woken.set()
        await asyncio.Event().wait()

    def paint():
        painted.append(1)
        screen.end()

    assert not await wait_unless_ended(screen, hang(), paint)
    assert painted == [1]


async def test_error_of_the_work_is_raised(screen):
    async def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await wait_unless_ended(screen, fail(), lambda: None)
