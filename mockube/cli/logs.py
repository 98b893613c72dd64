"""`mockube logs`: print the logs of a cluster's processes, and follow them."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from mockube.clusters.logs import COMPONENTS, Tail, merge_lines
from mockube.clusters.named_cluster import POLL_SECONDS, ClusterFolder, find_cluster, lock_holder
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import non_negative_int
from mockube.component_base.printable import printable
from mockube.failure import Missing

from .parsing import CommandParser
from .shared_flags import add_chosen_name, add_short_name
from .target import chosen_name


def add_flags(parser: CommandParser) -> None:
    add_chosen_name(parser)
    add_short_name(parser)
    parser.add_argument(
        "component", nargs="?", choices=COMPONENTS, help=f"{', '.join(COMPONENTS)} (all, by time)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="follow the logs while the cluster runs")
    parser.add_argument(
        "--tail", type=non_negative_int, metavar="N", help="number of last lines to print (all)"
    )


def run(options: argparse.Namespace) -> int:
    folder = find_cluster(chosen_name(options), os.environ).folder
    components = [options.component] if options.component else COMPONENTS
    files = {name: folder.log(name) for name in components if folder.log(name).exists()}
    if not files:
        raise Missing(f'"{folder.name}" has no logs of {" and ".join(components)}')
    tails = [Tail(path, name if len(files) > 1 else "") for name, path in files.items()]
    lines = merge_lines(tails)
    _print_lines(lines if options.tail is None else lines[max(0, len(lines) - options.tail) :])
    if options.follow:
        signal.signal(
            signal.SIGINT, signal.SIG_DFL
        )  # Ctrl+C ends the process at once: there is nothing to clean up
        asyncio.run(_follow(folder, tails))
    return 0


async def _follow(folder: ClusterFolder, tails: Sequence[Tail]) -> None:
    clock = RealClock()
    followed = lock_holder(folder.lock)
    while followed is not None and lock_holder(folder.lock) == followed:
        await clock.sleep(POLL_SECONDS)
        _print_lines(merge_lines(tails))
    _print_lines(merge_lines(tails))


def _print_lines(lines: Sequence[str]) -> None:
    sys.stdout.writelines(f"{printable(line[:-1])}\n" for line in lines)
    sys.stdout.flush()
