"""`mockube clock [pause|resume|rate N|advance TIME]`: print or change the time of a cluster."""

import argparse
import asyncio
from typing import Final

from mockube import control_objects
from mockube.apimachinery.tree import Tree
from mockube.client.verbs import Client
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import seconds
from mockube.control_objects import CLOCK, CLOCKS

from .output import table
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access

_SPECS: Final[dict[str, Tree]] = {"pause": {"paused": True}, "resume": {"paused": False}}


def add_flags(parser: CommandParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="show|pause|resume|rate|advance", required=True)
    for name, text in (
        ("show", "print the time"),
        ("pause", "let time stand still; it can still be advanced"),
        ("resume", "let time pass again"),
    ):
        add_server_flags(commands.add_parser(name, help=text))
    rate_parser = commands.add_parser("rate", help="let time pass faster or slower")
    rate_parser.add_argument(
        "rate", type=float, metavar="N", help="seconds of the cluster in a second of the machine"
    )
    add_server_flags(rate_parser)
    advance_parser = commands.add_parser("advance", help="advance the clock, with what is due on the way")
    advance_parser.add_argument("time", type=seconds, metavar="TIME", help="such as 90s, 5m or 1h30m")
    add_server_flags(advance_parser)


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        print(asyncio.run(_run(options)))
    return 0


async def _run(options: argparse.Namespace) -> str:
    """Return what to print."""
    async with open_client(server_access(options), RealClock()) as client:
        if options.action == "advance":
            return await control_objects.advance_clock(client, options.time)
        if options.action != "show":
            spec = _SPECS.get(options.action) or {"rate": options.rate}
            await client.patch(CLOCKS, CLOCK, {"spec": spec})
        return await _clock_table(client)


async def _clock_table(client: Client) -> str:
    return table(await control_objects.find_table(client, CLOCKS.plural))
