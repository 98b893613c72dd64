"""`mockube trace`: write the history of a cluster as a file for Perfetto's viewer."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Resource
from mockube.client.verbs import Client
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.counted import counted
from mockube.control_objects import CONTROLLERS, FAULTS, MARKS, REQUESTS
from mockube.history.all_changes import read_all_changes
from mockube.trace_events import Recorded, trace

from .output import check_writable
from .parsing import CommandParser
from .progress import print_line
from .target import add_server_flags, convert_errors, server_access


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write the trace; - for stdout"
    )
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    path = None if options.output == "-" else Path(options.output)
    if path is not None:
        check_writable(path)
    with convert_errors():
        recorded = asyncio.run(_read(options))
    content = trace(recorded)
    if path is None:
        sys.stdout.buffer.write(content)
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print_line(
        f"{options.output} has {counted(len(recorded.changes), 'write', 'writes')} and "
        f"{counted(len(recorded.requests), 'request', 'requests')}: open it at https://ui.perfetto.dev"
    )
    return 0


async def _read(options: argparse.Namespace) -> Recorded:
    async with open_client(server_access(options), RealClock()) as client:
        history = await read_all_changes(client)
        for omitted in history.omitted():
            print_line(omitted)
        return Recorded(
            changes=history.changes,
            requests=await _all(client, REQUESTS),
            controllers=await _all(client, CONTROLLERS),
            marks=await _all(client, MARKS),
            faults=await _all(client, FAULTS),
        )


async def _all(client: Client, kind: Resource[Any]) -> Sequence[ReadOnlyTree]:
    """Return the objects of a kind; none, with a line that says so, if the server refuses to list them."""
    try:
        return (await client.list(kind)).items
    except ApiError as error:
        print_line(f"the trace has no {kind.plural}: {error.message}")
        return ()
