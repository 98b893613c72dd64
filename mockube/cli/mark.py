"""`mockube mark [NAME]`: give a revision of the store a name, or list the names."""

import argparse
import asyncio

from mockube import control_objects
from mockube.client.resources import Key
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import positive_int
from mockube.control_objects import MARKS
from mockube.failure import UsageError

from .output import table
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access


def add_flags(parser: CommandParser) -> None:
    parser.add_argument("mark", nargs="?", metavar="MARK", help="the name; without it, all marks are listed")
    parser.add_argument("--revision", type=positive_int, metavar="N", help="the revision (the newest one)")
    parser.add_argument("--remove", action="store_true", help="remove the mark")
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    if options.mark is None and (options.remove or options.revision):
        raise UsageError("mark: --revision and --remove need the name of a mark")
    with convert_errors():
        print(asyncio.run(_run(options)))
    return 0


async def _run(options: argparse.Namespace) -> str:
    """Return what to print."""
    async with open_client(server_access(options), RealClock()) as client:
        if options.mark is None:
            return table(await control_objects.find_table(client, MARKS.plural))
        if options.remove:
            await client.delete(MARKS, Key("", options.mark))
            return f"{options.mark} removed"
        spec = {"revision": options.revision} if options.revision else {}
        created = await client.create(MARKS, control_objects.object_of("Mark", options.mark, spec))
        return f"{options.mark} is revision {created['spec']['revision']}"
