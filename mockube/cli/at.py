"""`mockube at MOMENT [-- CMD ...]`: run a command with the cluster as it was; without one, print the revision of the moment."""

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mockube.client.kubeconfig import Access, read
from mockube.clusters.kubeconfigs import with_server_path
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.launcher import NOT_FOUND
from mockube.component_base.operating_system import shell_exit_code
from mockube.launch import IN_CLUSTER_VARIABLES, KUBECONFIG_VARIABLES
from mockube.moments import PATH, Moment, find_moment

from .parsing import CommandParser
from .progress import print_line
from .target import add_server_flags, convert_errors, find_target

MOMENT_HELP = "a revision, the name of a Mark, a time such as 2026-01-31T12:00:00Z, a span before now such as -5m, now, or oldest"


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [--name=NAME] MOMENT [-- CMD [ARG ...]]"
    parser.epilog = "The past can be read, and not changed: `mockube at -5m -- kubectl get pods -A`."
    add_server_flags(parser)
    parser.add_argument("moment", metavar="MOMENT", help=MOMENT_HELP)
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="the command; it is run with KUBECONFIG set"
    )


def run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if command and shutil.which(command[0]) is None:
        print_line(f"{command[0]}: command not found")
        return NOT_FOUND
    with convert_errors():
        kubeconfig = find_target(options).kubeconfig
        moment = asyncio.run(_find(read(kubeconfig), options.moment))
    if command:
        return _run(command, kubeconfig, moment)
    print(moment.revision if moment.time is None else f"{moment.revision} {moment.time}")
    return 0


async def _find(access: Access, moment: str) -> Moment:
    async with open_client(access, RealClock()) as client:
        return await find_moment(client, moment)


def _run(command: Sequence[str], kubeconfig: Path, moment: Moment) -> int:
    """Run the command, which receives the signal of Ctrl+C itself, and return its exit code as in a shell."""
    with tempfile.TemporaryDirectory(prefix="mockube-") as folder:
        path = Path(folder) / "kubeconfig"
        with_server_path(kubeconfig, f"{PATH}{moment.revision}", path)
        environment = {name: value for name, value in os.environ.items() if name not in IN_CLUSTER_VARIABLES}
        environment |= dict.fromkeys(KUBECONFIG_VARIABLES, str(path))
        # A handler, unlike SIG_IGN, is not inherited by the command.
        signal.signal(signal.SIGINT, lambda *_: None)
        process = subprocess.Popen(command, env=environment)  # noqa: S603 - the user names it
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        code = process.wait()
    return shell_exit_code(code)
