"""The entry point of `mockube`: the table of commands, and the exit codes and error messages that they share.

A command is a module of this package with `add_flags` and `run`, which is imported when the command is called. Results
are printed to stdout, everything else to stderr.
"""

import argparse
import errno
import os
import shlex
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from typing import Final, NamedTuple, NoReturn, Protocol, cast

from mockube import kubectl
from mockube.component_base.operating_system import UnsupportedSystem, check_system, os_problem
from mockube.component_base.printable import printable
from mockube.failure import Failure, UnknownCommand

from .output import Code, code_of, signal_exit_code
from .parsing import CommandParser, place_of_name, suggestion

OVERVIEW = """\
mockube is a Kubernetes control plane in Python. The first commands:

  mockube demo                 shows a cluster at work, in 20 seconds
  mockube up --detach          starts a cluster in the background
  mockube kubectl get nodes    runs kubectl with the cluster
  mockube run -- CMD           runs one command with a cluster of its own
  mockube down                 stops the cluster

`mockube --help` lists all commands, `mockube up --help` the flags of one.
"""
"""What `mockube` prints without arguments."""

HEAD: Final = """\
usage: mockube [--name=NAME] COMMAND [ARG ...]

A Kubernetes control plane in Python.
"""
TAIL: Final = """\
`mockube COMMAND --help` prints the flags of a command. Each can also be set by
an environment variable: --nodes by MOCKUBE_NODES.
"""

_ERRORS_OF_ARGUMENTS: Final = frozenset({errno.ENOENT, errno.EISDIR, errno.EEXIST})
"""Errors that a wrong path in the arguments causes, and not the machine."""


class CommandModule(Protocol):
    """The functions of a command's module."""

    def add_flags(self, parser: CommandParser) -> None: ...

    def run(self, options: argparse.Namespace) -> int:
        """Run the command, and return its exit code."""


class Command(NamedTuple):
    name: str
    summary: str
    module: str

    def load(self) -> CommandModule:
        return cast("CommandModule", import_module(f"mockube.cli.{self.module}"))

    def add_flags(self, parser: CommandParser) -> None:
        parser.description = f"{self.summary[0].upper()}{self.summary[1:]}."
        self.load().add_flags(parser)


GROUPS: Final[Mapping[str, Sequence[Command]]] = {
    "Clusters": (
        Command(name="up", summary="start a cluster", module="up"),
        Command(name="down", summary="stop a cluster", module="down"),
        Command(name="status", summary="show whether a cluster runs and is healthy", module="status"),
        Command(name="list", summary="list the clusters of this machine", module="listing"),
        Command(name="logs", summary="print the logs of a cluster", module="logs"),
        Command(name="kubeconfig", summary="print a cluster's kubeconfig, or merge it", module="kubeconfig"),
    ),
    "What is in a cluster": (
        Command(name="kubectl", summary="run kubectl with a cluster", module="kubectl"),
        Command(
            name="why", summary="explain the state of an object, or the refusal of a request", module="why"
        ),
        Command(name="report", summary="write what happened in a cluster to one file", module="report"),
        Command(name="ui", summary="open the page of a cluster in a browser", module="ui"),
        Command(name="top", summary="show nodes, pods, queues and requests in a terminal", module="top"),
        Command(name="at", summary="run a command with the cluster as it was at a moment", module="at"),
        Command(name="log", summary="print the writes of an object", module="log"),
        Command(name="blame", summary="print who set each field of an object", module="blame"),
        Command(name="diff", summary="print the objects that differ between two moments", module="diff"),
        Command(name="trace", summary="write the history of a cluster for Perfetto", module="trace"),
        Command(name="rewind", summary="go back to the objects of a moment", module="rewind"),
        Command(name="fork", summary="start another cluster with the objects of this one", module="fork"),
        Command(name="mark", summary="give a revision of the store a name", module="mark"),
        Command(name="requests", summary="print the requests to a server", module="requests"),
        Command(name="fault", summary="refuse, delay or cut requests to a server", module="fault"),
        Command(name="rbac", summary="print the smallest roles for what a user did", module="rbac"),
        Command(name="clock", summary="print, pause or advance the time of a cluster", module="clock"),
        Command(name="url", summary="print the URLs of Services, Ingresses and Gateways", module="url"),
        Command(name="nodes", summary="print or change the number of simulated nodes", module="nodes"),
        Command(name="node-shell", summary="open a shell on a simulated node", module="node_shell"),
        Command(
            name="images", summary="list, explain or add images of simulated containers", module="images"
        ),
        Command(
            name="reset", summary="delete all objects of a cluster, or restore its snapshot", module="reset"
        ),
        Command(
            name="import",
            summary="import objects that kubectl printed from another cluster",
            module="imports",
        ),
        Command(name="snapshot", summary="save all objects to a file, or restore them", module="snapshot"),
    ),
    "Tests": (
        Command(name="run", summary="run one command with a temporary cluster", module="run"),
        Command(
            name="explore",
            summary="disturb an operator at every moment, and report what then is wrong",
            module="explore",
        ),
        Command(
            name="lint", summary="check manifests and charts against several minor releases", module="lint"
        ),
        Command(
            name="test-operator",
            summary="make the judgements that every operator should pass",
            module="test_operator",
        ),
        Command(name="envtest", summary="write launchers that replace envtest's binaries", module="envtest"),
        Command(name="crds", summary="print the CustomResourceDefinitions of a pack", module="crds"),
    ),
    "mockube": (
        Command(name="demo", summary="show a cluster at work, in 20 seconds", module="demo"),
        Command(name="doctor", summary="check this machine for problems", module="doctor"),
        Command(name="completion", summary="print the completion script for a shell", module="completion"),
        Command(name="version", summary="print the version", module="version"),
    ),
}
"""The commands, in groups of the help."""
COMMANDS: Final = {command.name: command for commands in GROUPS.values() for command in commands}


def parser() -> CommandParser:
    """Return the parser of all commands with their flags, for which their modules are imported."""
    full_parser = CommandParser(prog="mockube")
    _add_name_flag(full_parser)
    commands = full_parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        command.add_flags(commands.add_parser(command.name, help=command.summary))
    return full_parser


def main(argv: Sequence[str] | None = None) -> int:
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    try:
        check_system()
        code = _dispatch(arguments)
        sys.stdout.flush()
    except UnsupportedSystem as unsupported:
        print(f"mockube: {unsupported}", file=sys.stderr)
        return Code.ERROR
    except Failure as failure:
        print(
            f"mockube: {failure if isinstance(failure, UnknownCommand) else printable(str(failure))}",
            file=sys.stderr,
        )
        return code_of(failure)
    except OSError as error:
        return _report_os_error(error)
    except KeyboardInterrupt:
        return signal_exit_code(signal.SIGINT)
    return code


def _dispatch(arguments: list[str]) -> int:
    match arguments:
        case []:
            print(OVERVIEW, end="")
            return Code.OK
        case ["help", name, *_] if name in COMMANDS:
            _command_parser(COMMANDS[name], ["--help"]).print_help()
            return Code.OK
    top_parser = _top_level_parser()
    arguments = _expand_aliases(arguments)
    top_parser.arguments = [*takewhile(lambda argument: argument not in COMMANDS, arguments)]
    options = top_parser.read(arguments, {})
    if options.command not in COMMANDS:
        from .unknown_commands import unknown_problem  # noqa: PLC0415 - only for this error

        raise UnknownCommand(unknown_problem(options, COMMANDS, os.environ))
    command = COMMANDS[options.command]
    command_parser = _command_parser(command, options.rest)
    top_level_options = {"name": options.name} if "name" in options else {}
    if top_level_options and "--name" not in command_parser.flags():
        command_parser.error("this command takes no --name")
    return command.load().run(
        command_parser.read(options.rest, os.environ, argparse.Namespace(**top_level_options))
    )


def _expand_aliases(arguments: list[str]) -> list[str]:
    match arguments:
        case ["help"]:
            return ["--help"]
        case ["help", "help", *_]:
            return ["--help"]
        case ["help", name, *_]:
            return [name]
        case ["--version", *_]:
            return ["version"]
        case _:
            return arguments


def _command_parser(command: Command, arguments: Sequence[str]) -> CommandParser:
    command_parser = CommandParser(prog=f"mockube {command.name}")
    command_parser.arguments = arguments
    if command.name in kubectl.COMMANDS:
        line = shlex.join(["mockube", kubectl.KUBECTL, command.name, *arguments])
        command_parser.hint = f", or `{line}`"
    command.add_flags(command_parser)
    return command_parser


class _TopLevelParser(CommandParser):
    """The parser of the arguments before a command's own flags; its help lists the commands."""

    begins_command = True

    def format_help(self) -> str:
        groups = (
            f"{title}:\n" + "".join(f"  {command.name:<15}{command.summary}\n" for command in commands)
            for title, commands in GROUPS.items()
        )
        return "\n".join((HEAD, *groups, TAIL))

    def error(self, message: str, hint: str = "") -> NoReturn:
        flag = next(
            (each.partition("=")[0] for each in self.arguments or () if self._is_unknown_flag(each)), ""
        )
        if flag:
            place = place_of_name(flag, [*self.flags()])
            owner = next((command.name for command in COMMANDS.values() if flag in _flags_of(command)), "")
            place = place or (f": it is a flag of a command, as in `mockube {owner} {flag}`" if owner else "")
            message = f"unknown flag {flag} before the command{place or suggestion(flag, self.flags())}"
        elif message.startswith("the following arguments are required"):
            message = "no command"
        super().error(message, hint)

    def _is_unknown_flag(self, argument: str) -> bool:
        return argument.startswith("-") and self._action_of(argument.partition("=")[0]) is None


def _flags_of(command: Command) -> Iterable[str]:
    command_parser = CommandParser(prog=command.name)
    command.add_flags(command_parser)
    return command_parser.flags()


def _top_level_parser() -> CommandParser:
    top_parser = _TopLevelParser(prog="mockube")
    _add_name_flag(top_parser)
    top_parser.add_argument("command")
    top_parser.add_argument("rest", nargs=argparse.REMAINDER)
    return top_parser


def _add_name_flag(parser: CommandParser) -> None:
    parser.add_argument("--name", default=argparse.SUPPRESS, help="the cluster's name (default)")


def _report_os_error(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        # The reader has closed the pipe, as in `mockube demo | head -n 1`. Python would flush stdout, and fail, again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return signal_exit_code(signal.SIGPIPE)
    advice = "" if error.errno in _ERRORS_OF_ARGUMENTS else " (run `mockube doctor` to check this machine)"
    print(f"mockube: {printable(os_problem(error))}{advice}", file=sys.stderr)
    return Code.ERROR
