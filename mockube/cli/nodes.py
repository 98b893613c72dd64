"""`mockube nodes [NODES]`: print the number of simulated nodes, or set them."""

import argparse
import asyncio
from typing import Final

from mockube import resizing
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import seconds
from mockube.component_base.node_pools.flag import read_nodes
from mockube.controller_manager.client.kubeconfig import Access

from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access

TIMEOUT: Final = 60.0


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "nodes",
        type=read_nodes,
        nargs="?",
        metavar="NODES",
        help="the new nodes: node-1 to node-N, pools such as cpu=4,memory=16Gi:3, or a file of pools",
    )
    add_server_flags(parser)
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT,
        metavar="TIME",
        help=f"exit with code 4 if the nodes are not ready in time ({TIMEOUT:g}s)",
    )


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        print(asyncio.run(_run(options, server_access(options))))
    return 0


async def _run(options: argparse.Namespace, access: Access) -> str:
    """Return the line to print."""
    clock = RealClock()
    async with open_client(access, clock) as client:
        if options.nodes is None:
            return str(await resizing.count_nodes(client))
        await resizing.request_nodes(client, options.nodes, clock)
        await resizing.wait_for_nodes(client, options.nodes, clock=clock, seconds=options.timeout)
        return "1 node is ready" if options.nodes.count == 1 else f"{options.nodes.count} nodes are ready"
