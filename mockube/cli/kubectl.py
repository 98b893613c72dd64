"""`mockube kubectl ARG...`: run the machine's kubectl with a cluster. kubectl replaces the process."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mockube.kubectl import KUBECTL, find_kubectl, sends_requests

from .parsing import CommandParser
from .target import add_server_flags, find_target


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [--name=NAME] [ARG ...]"
    parser.passes_flags = True
    parser.epilog = "`mockube help kubectl` prints this help, and `mockube kubectl --help` that of kubectl."
    add_server_flags(parser)
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="ARG",
        help="kubectl's command, its flags and arguments, as `get pods -n kube-system`",
    )


def run(options: argparse.Namespace) -> int:
    program = find_kubectl()
    arguments = options.arguments[1:]
    environment = {**os.environ, "KUBECONFIG": str(_kubeconfig(options, arguments).absolute())}
    sys.stdout.flush()
    os.execve(program, [KUBECTL, *arguments], environment)  # noqa: S606 - it was found by its name


def _kubeconfig(options: argparse.Namespace, arguments: Sequence[str]) -> Path:
    """Return the kubeconfig of a cluster of mockube, and not the user's own one, which may be that of another cluster."""
    if not sends_requests(arguments):
        return Path(os.devnull)
    return find_target(options, only_own=True).kubeconfig
