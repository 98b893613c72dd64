"""Flags that several commands share: the name of the cluster, its options, the output format."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mockube.apimachinery.schema import minors
from mockube.component_base.flags import non_negative_int
from mockube.component_base.release_options import read_minor
from mockube.launch import NAME, NODES, PACKS

from .parsing import CommandParser

SIMULATED: Final = "simulated"
SUCCEED: Final = "succeed"
FAIL: Final = "fail"
PROCESS: Final = "process"


def add_name(parser: CommandParser) -> None:
    parser.add_argument("-n", "--name", default=NAME, help=f"the cluster's name ({NAME})")


def add_output(parser: CommandParser, *more: str) -> None:
    parser.add_argument(
        "-o",
        "--output",
        choices=["json", *more],
        metavar="FORMAT",
        help=f"{' or '.join(['json', *more])} for programs",
    )


def add_cluster_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "--simulate-nodes",
        type=non_negative_int,
        default=NODES,
        metavar="N",
        help=f"number of simulated nodes ({NODES})",
    )
    parser.add_argument(
        "--packs",
        default=PACKS,
        metavar="NAMES",
        help=f"packs of kinds to serve besides Kubernetes' own ({PACKS or 'none'})",
    )
    add_version(parser)


def add_version(parser: CommandParser) -> None:
    parser.add_argument(
        "--kubernetes-version",
        type=read_minor,
        default=minors.NEWEST,
        metavar="MINOR",
        help=f"minor release of Kubernetes, {minors.OLDER[-1]} to {minors.NEWEST} ({minors.NEWEST})",
    )


def version_flags(options: argparse.Namespace) -> Sequence[str]:
    """Return the flag of both processes for the minor release, if it is not the default."""
    minor = options.kubernetes_version
    return () if minor == minors.NEWEST else (f"--kubernetes-version={minor}",)


def add_runtime(parser: CommandParser) -> None:
    """Add the flags of the container runtime; `mockube up` has them among the manager's flags."""
    parser.add_argument(
        "--container-runtime",
        choices=[SIMULATED, PROCESS],
        default=SIMULATED,
        metavar="RUNTIME",
        help=f"runtime of containers: {SIMULATED}, or {PROCESS}, which runs the images of --images as local processes ({SIMULATED})",
    )
    parser.add_argument(
        "--simulate-unknown-programs",
        choices=[SUCCEED, FAIL],
        default=SUCCEED,
        metavar="RESULT",
        help=f"what programs do that are not simulated: {SUCCEED}, or {FAIL} with exit code 127 ({SUCCEED})",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help=f"file that maps images to local commands, for --container-runtime={PROCESS} (none)",
    )
