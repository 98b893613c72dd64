"""`mockube rewind MOMENT`: the objects of a past moment become the newest ones."""

import argparse
import asyncio
from typing import Any

from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.control_objects import rewind

from .at import MOMENT_HELP
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access


def add_flags(parser: CommandParser) -> None:
    add_server_flags(parser)
    moment = parser.add_mutually_exclusive_group(required=True)
    moment.add_argument("moment", nargs="?", metavar="MOMENT", help=MOMENT_HELP)
    moment.add_argument("--snapshot", metavar="SNAPSHOT", help="the name of a Snapshot, instead of a moment")


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        done = asyncio.run(_rewind(options))
    time = f", {done['time']}" if done.get("time") else ""
    counts = ", ".join(
        f"{done.get(kind, 0)} {kind}" for kind in ("created", "changed", "deleted", "replaced")
    )
    print(f"The objects are those of revision {done['to']}{time}: {counts}.")
    print(
        f"The newest revision is {done['revision']}; `mockube rewind {done['previousRevision']}` undoes this."
    )
    for text in done.get("notRewound") or ():
        print(f"{text}.")
    return 0


async def _rewind(options: argparse.Namespace) -> Any:
    async with open_client(server_access(options), RealClock()) as client:
        return await rewind(client, options.moment, snapshot=options.snapshot)
