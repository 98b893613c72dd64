"""`mockube run -- CMD ...`: run one command with a temporary cluster."""

import argparse
import asyncio
from collections.abc import Sequence

from mockube.component_base.clock import RealClock
from mockube.failure import UsageError
from mockube.launch import LaunchOptions

from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_cluster_flags, add_runtime, version_flags


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [FLAG ...] -- CMD [ARG ...]"
    add_cluster_flags(parser)
    add_runtime(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="print how long the start takes")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="the command; it is run with KUBECONFIG set"
    )


def run(options: argparse.Namespace) -> int:
    from mockube.clusters.health import read_not_simulated  # noqa: PLC0415 - as below
    from mockube.processes.run_command import run_once  # noqa: PLC0415 - it starts processes

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UsageError("no command: use `mockube run -- CMD ...`")
    return asyncio.run(
        run_once(
            command,
            options=LaunchOptions(
                nodes=options.simulate_nodes,
                packs=options.packs,
                flags=version_flags(options),
                manager_flags=manager_flags(options),
            ),
            clock=RealClock(),
            report=print_line,
            note=print_line if options.verbose else lambda _: None,
            read_not_simulated=read_not_simulated,
        )
    )


def manager_flags(options: argparse.Namespace) -> Sequence[str]:
    images = () if options.images is None else (f"--images={options.images.absolute()}",)
    return (
        *version_flags(options),
        f"--container-runtime={options.container_runtime}",
        f"--simulate-unknown-programs={options.simulate_unknown_programs}",
        *images,
    )
