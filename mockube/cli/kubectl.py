"""`mockube kubectl ARG...`: run the machine's kubectl with a cluster. kubectl replaces the process."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from mockube.clusters.named_cluster import running_cluster
from mockube.failure import Missing
from mockube.kubectl import KUBECTL, find_kubectl, sends_requests

from .parsing import CommandParser
from .target import add_server_flags


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [--name=NAME] [ARG ...]"
    parser.passes_flags = True
    parser.epilog = "`mockube help kubectl` prints this help, and `mockube kubectl --help` that of kubectl."
    add_server_flags(parser, short=False)
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
    if options.kubeconfig is not None:
        if not options.kubeconfig.exists():  # kubectl would use another cluster
            raise Missing(f"{options.kubeconfig}: No such file or directory")
        return Path(options.kubeconfig)
    try:
        folder, _ = running_cluster(options.name, os.environ)
    except Missing:
        if sends_requests(arguments):
            raise
        return Path(os.devnull)  # not the user's own kubeconfig, which may be that of another cluster
    return folder.kubeconfig
