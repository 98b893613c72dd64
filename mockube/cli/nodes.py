"""`mockube nodes [NODES]`: print the number of simulated nodes, or set them."""

import argparse
import asyncio
from typing import Final

from mockube import resizing
from mockube.client.kubeconfig import Access
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import seconds
from mockube.failure import UsageError
from mockube.kubelet.node_pools import deprecated
from mockube.kubelet.node_pools.flag import read_nodes
from mockube.kubelet.node_pools.pool import PoolError

from .parsing import CommandParser
from .shared_flags import add_short_name
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
    add_short_name(parser)
    for name, read, metavar, example in (
        ("--zones", deprecated.read_zones, "A,B", "zone=a,zone=b:3"),
        ("--labels", deprecated.read_labels, "K=V,...", "label=disk=ssd:3"),
    ):
        replacement = f"use `mockube nodes {example}` instead"
        parser.add_deprecated(name, read, metavar=metavar, replacement=replacement)
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT,
        metavar="TIME",
        help=f"exit with code 4 if the nodes are not ready in time ({TIMEOUT:g}s)",
    )


def run(options: argparse.Namespace) -> int:
    _replace_deprecated(options)
    with convert_errors():
        print(asyncio.run(_run(options, server_access(options))))
    return 0


def _replace_deprecated(options: argparse.Namespace) -> None:
    """Replace deprecated flags by the pool that they describe, and report these flags."""
    flags = [flag for flag, value in (("--zones", options.zones), ("--labels", options.labels)) if value]
    if not flags:
        return
    if options.nodes is None:
        raise UsageError(f"{', '.join(flags)}: give the new number of nodes, too")
    try:
        options.nodes = deprecated.pool_of(
            options.nodes, zones=options.zones or (), labels=dict(options.labels or ())
        )
    except PoolError as error:
        raise UsageError(f"{', '.join(flags)}: {error}") from error
    deprecated.report(flags, f"`mockube nodes {options.nodes.text}`")


async def _run(options: argparse.Namespace, access: Access) -> str:
    """Return the line to print."""
    clock = RealClock()
    async with open_client(access, clock) as client:
        if options.nodes is None:
            return str(await resizing.count_nodes(client))
        await resizing.request_nodes(client, options.nodes, clock)
        await resizing.wait_for_nodes(client, options.nodes, clock=clock, seconds=options.timeout)
        return "1 node is ready" if options.nodes.count == 1 else f"{options.nodes.count} nodes are ready"
