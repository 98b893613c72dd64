"""`mockube nodes [N]`: print or set the number of simulated nodes."""

import argparse
import asyncio
from typing import Final

from mockube import resizing
from mockube.apimachinery.names import check_label_value
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import labels, seconds
from mockube.controller_manager.client.kubeconfig import Access
from mockube.failure import UsageError

from .parsing import CommandParser
from .shared_flags import node_count
from .target import add_server_flags, convert_errors, server_access

TIMEOUT: Final = 60.0


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "nodes", type=node_count, nargs="?", metavar="N", help="the new number of nodes, node-1 to node-N"
    )
    add_server_flags(parser)
    parser.add_argument(
        "--zones",
        type=_zones,
        metavar="A,B",
        help="zones of new nodes, in turn (unchanged)",
    )
    parser.add_argument("--labels", type=_labels, metavar="K=V,...", help="labels of new nodes (none)")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT,
        metavar="TIME",
        help=f"exit with code 4 if the nodes are not ready in time ({TIMEOUT:g}s)",
    )


def run(options: argparse.Namespace) -> int:
    if options.nodes is None and (options.zones or options.labels):
        raise UsageError("--zones and --labels are of new nodes: give the new number of nodes, too")
    with convert_errors():
        print(asyncio.run(_run(options, server_access(options))))
    return 0


async def _run(options: argparse.Namespace, access: Access) -> str:
    """Return the line to print."""
    clock = RealClock()
    async with open_client(access, clock) as client:
        if options.nodes is None:
            return str(await resizing.count_nodes(client))
        flags = {"zones": options.zones, "labels": options.labels}
        extra_data = {name: text for name, text in flags.items() if text}
        await resizing.request_nodes(client, options.nodes, extra_data, clock)
        await resizing.wait_for_nodes(client, options.nodes, clock=clock, seconds=options.timeout)
        return "1 node is ready" if options.nodes == 1 else f"{options.nodes} nodes are ready"


def _zones(text: str) -> str:
    for zone in text.split(","):
        if problems := check_label_value(zone):
            raise argparse.ArgumentTypeError(f'"{zone}": {problems[0]}')
    return text


def _labels(text: str) -> str:
    labels(text)
    return text
