"""`mockube top`: show what a cluster does now, and refresh it until the user quits."""

import argparse
import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

from mockube.apimachinery.timestamps import format_time
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import positive
from mockube.component_base.supervision import start
from mockube.top import screen, terminal
from mockube.top.readings import Reading, read
from mockube.top.requests import RequestFollower, count_requests

from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access

_ROWS: Final = 10
"""The rows of each section that are printed as text."""
_SHARE: Final = 4
"""A refresh waits at least so many times as long as the reading took."""
_CLOCK: Final = RealClock()


def add_flags(parser: CommandParser) -> None:
    parser.epilog = "q or Ctrl-C quits. Without a terminal it prints once, as with --once."
    parser.add_argument(
        "--interval", type=positive, default=2.0, metavar="SECONDS", help="seconds between refreshes (2)"
    )
    parser.add_argument("--once", action="store_true", help="print it once, as text")
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    is_text = options.once or not terminal.is_screen()
    with convert_errors():
        asyncio.run(_print(options) if is_text else _show(options))
    return 0


async def _print(options: argparse.Namespace) -> None:
    """Print two readings as one, since rates need a time."""
    async with open_client(server_access(options), _CLOCK) as client:
        follower = RequestFollower(client, _CLOCK)
        before = await read(client, _CLOCK)
        await _CLOCK.sleep(min(options.interval, 1.0))
        reading = await read(client, _CLOCK)
        await follower.read_remembered()
    sections = _sections(reading, before, follower)
    for line in screen.lines(sections, [_ROWS] * len(sections)):
        print(line.text)


def _sections(
    reading: Reading, before: Reading | None, follower: RequestFollower
) -> Sequence[screen.Section]:
    return screen.sections(
        reading, before, follower.problem or count_requests(follower.recent()), follower.span
    )


async def _show(options: argparse.Namespace) -> None:
    access = server_access(options)
    async with open_client(access, _CLOCK) as client:
        reading = await read(client, _CLOCK)  # a server that is away is an error, as long as nothing is shown
        follower = RequestFollower(client, _CLOCK)
        await follower.read_remembered()
        following = start("requests", follower.follow())
        try:
            with terminal.open_screen() as view:
                await _refresh(client, access.server, reading, follower, view, options.interval)
        finally:
            following.cancel()


async def _refresh(
    client: Client,
    server: str,
    reading: Reading,
    follower: RequestFollower,
    view: terminal.Screen,
    interval: float,
) -> None:
    """Paint until the user quits: at each reading, and when the size of the terminal changes."""
    before: Reading | None = None
    problem, pause = "", interval
    while True:
        title = (
            f"mockube top  {server}  {format_time(_CLOCK.now())}  {problem or f'every {pause:g} s'}, q quits"
        )
        paint = partial(_paint, view, title, _sections(reading, before, follower))
        paint()
        if not await wait_unless_ended(view, _CLOCK.sleep(pause), paint):
            return
        began = _CLOCK.monotonic()
        next_reading = _NextReading()
        if not await wait_unless_ended(view, next_reading.read(client), paint):
            return
        problem = next_reading.problem
        if next_reading.reading is not None:
            before, reading = reading, next_reading.reading
        pause = max(interval, round((_CLOCK.monotonic() - began) * _SHARE, 1))


def _paint(view: terminal.Screen, title: str, sections: Sequence[screen.Section]) -> None:
    _, height = view.size
    rows = screen.rows_that_fit(sections, height - 1)
    view.paint([screen.Line(title), *screen.lines(sections, rows)])


class _NextReading:
    """A reading, or why there is none."""

    def __init__(self) -> None:
        self.reading: Reading | None = None
        self.problem = ""

    async def read(self, client: Client) -> None:
        try:
            self.reading = await read(client, _CLOCK)
        except NoResponse as error:
            self.problem = f"the server does not respond: {error}"


async def wait_unless_ended(
    view: terminal.Screen, work: Coroutine[Any, Any, None], paint: Callable[[], None]
) -> bool:
    """Wait for work, and paint when the size of the terminal changes; cancel it and return False if the user quits before its end."""
    task = start("top", work)
    try:
        while not task.done():
            woken = start("wake", view.woken.wait())
            await asyncio.wait({task, woken}, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
            if view.is_ended:
                return False
            if view.woken.is_set():
                view.woken.clear()
                paint()
        await task
    finally:
        task.cancel()
        await asyncio.wait({task})
    return True
