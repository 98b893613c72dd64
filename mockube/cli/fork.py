"""`mockube fork NEW`: start another cluster with the objects of one, of now or of a moment."""

import argparse
import asyncio
import shlex
from typing import Any

from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.control_objects import FORK_SECONDS, FORKS, post

from .at import MOMENT_HELP
from .output import program_name
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access


def add_flags(parser: CommandParser) -> None:
    parser.epilog = "A fork ends with `mockube down --name=NEW`, or with the cluster of which it is a fork. `mockube list` lists it."
    add_server_flags(parser)
    parser.add_argument("new", metavar="NEW", help="the name of the new cluster")
    moment = parser.add_mutually_exclusive_group()
    moment.add_argument("--at", metavar="MOMENT", help=f"{MOMENT_HELP} (now)")
    moment.add_argument("--snapshot", metavar="SNAPSHOT", help="the name of a Snapshot, instead of a moment")


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        fork = asyncio.run(_fork(options))
    time = f", {fork['time']}" if fork.get("time") else ""
    print(f"{options.new} has the objects of revision {fork['revision']}{time}:\n")
    print(f"  export KUBECONFIG={shlex.quote(fork['kubeconfig'])}\n")
    print("It does not have:")
    for text in fork["notForked"]:
        print(f"- {text}")
    print(f"\n`{program_name()} down --name={options.new}` stops it.")
    return 0


async def _fork(options: argparse.Namespace) -> Any:
    spec = {"name": options.new, "at": options.at, "snapshot": options.snapshot}
    async with open_client(server_access(options), RealClock()) as client:
        fields = {name: value for name, value in spec.items() if value is not None}
        return await post(client.with_timeout(FORK_SECONDS), FORKS, fields)
