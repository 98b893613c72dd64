"""`mockube node-shell NODE [-- COMMAND]`: a shell of root on a simulated node, as `docker exec -it NODE bash` on a node of kind."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from mockube.client.kubeconfig import Access
from mockube.component_base.clock import RealClock
from mockube.failure import UsageError

from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access

SHELL = ("bash",)


def add_flags(parser: CommandParser) -> None:
    parser.epilog = (
        "It needs the verb create on nodes/proxy, because root of a node can do anything there. Without a command, or with a "
        "terminal, the shell is interactive: `exit` or Ctrl-D ends it."
    )
    parser.add_argument("node", metavar="NODE", help="the name of the node, such as node-1")
    add_server_flags(parser)
    command = parser.add_argument(
        "command_line",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="a command to run instead of a shell, such as `-- crictl ps`; its exit code is that of mockube",
    )
    command.required = False  # argparse would name it as missing beside NODE


def run(options: argparse.Namespace) -> int:
    command = options.command_line
    if command[:1] == ["--"]:
        command = command[1:]
        if not command:
            raise UsageError("there is no command after --")
    if "/" in options.node or not options.node:
        raise UsageError(f"{options.node!r} is not the name of a node")
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with convert_errors():
        return asyncio.run(
            _run(server_access(options), options.node, command or SHELL, has_terminal=has_terminal)
        )


async def _run(access: Access, node: str, command: Sequence[str], *, has_terminal: bool) -> int:
    from mockube.node_shell import NodeShell  # noqa: PLC0415 - HTTP is imported only if it is used

    return await NodeShell(access, RealClock(), node).run(command, has_terminal=has_terminal)
