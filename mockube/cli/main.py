"""The entry point of `mockube`: the table of commands, and the exit codes and error messages that they share.

A command is a module of this package with `add_flags` and `run`, which is imported when the command is called. Results
are printed to stdout, everything else to stderr.
"""

import argparse
import os
import signal
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from mockube.failure import Failure

from .output import Code, code_of, signal_exit_code
from .parsing import CommandParser, suggestion

VARIABLES = (
    "Each flag can also be set by an environment variable: --simulate-nodes by MOCKUBE_SIMULATE_NODES."
)
NAME_HELP = "the cluster's name (default)"


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


COMMANDS = {
    command.name: command
    for command in (
        Command(name="up", summary="start a cluster", module="up"),
        Command(name="down", summary="stop a cluster", module="down"),
        Command(name="status", summary="show whether a cluster runs and is healthy", module="status"),
        Command(name="list", summary="list the clusters of this machine", module="listing"),
        Command(name="logs", summary="print the logs of a cluster", module="logs"),
        Command(name="kubeconfig", summary="print a cluster's kubeconfig, or merge it", module="kubeconfig"),
        Command(name="nodes", summary="print or change the number of simulated nodes", module="nodes"),
        Command(
            name="reset", summary="delete all objects of a cluster, or restore its snapshot", module="reset"
        ),
        Command(name="run", summary="run one command with a temporary cluster", module="run"),
        Command(
            name="crds",
            summary="print the CustomResourceDefinitions of a pack",
            module="crds",
        ),
        Command(
            name="envtest",
            summary="write launchers that replace envtest's binaries",
            module="envtest",
        ),
        Command(
            name="import",
            summary="import objects that kubectl printed from another cluster",
            module="imports",
        ),
        Command(
            name="snapshot",
            summary="save all objects to a file, or restore them",
            module="snapshot",
        ),
        Command(name="demo", summary="demonstrate the store", module="demo"),
        Command(name="doctor", summary="check this machine for problems", module="doctor"),
        Command(name="completion", summary="print the completion script for a shell", module="completion"),
        Command(name="version", summary="print the version", module="version"),
    )
}


def parser() -> CommandParser:
    """Return the parser of all commands with their flags."""
    return _full_parser([*COMMANDS])


def main(argv: Sequence[str] | None = None) -> int:
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except Failure as failure:
        print(f"mockube: {failure}", file=sys.stderr)
        return code_of(failure)
    except OSError as error:
        return _report_os_error(error)
    except KeyboardInterrupt:
        return signal_exit_code(signal.SIGINT)
    return code


def _dispatch(arguments: list[str]) -> int:
    top_parser = _top_level_parser()
    if not arguments:
        top_parser.print_help(sys.stderr)
        return Code.USAGE
    options = top_parser.read(_expand_aliases(arguments), {})
    if options.command not in COMMANDS:
        top_parser.error(f'unknown command "{options.command}"{suggestion(options.command, COMMANDS)}')
    command = COMMANDS[options.command]
    command_parser = CommandParser(prog=f"mockube {command.name}")
    command_parser.arguments = options.rest
    command.add_flags(command_parser)
    top_level_options = {"name": options.name} if "name" in options else {}
    if top_level_options and "--name" not in command_parser.flags():
        command_parser.error("this command takes no --name")
    return command.load().run(
        command_parser.read(options.rest, os.environ, argparse.Namespace(**top_level_options))
    )


def _expand_aliases(arguments: list[str]) -> list[str]:
    match arguments:
        case ["help", *words]:
            return [*words[:1], "--help"]
        case ["--version", *_]:
            return ["version"]
        case _:
            return arguments


class _TopLevelParser(CommandParser):
    """The parser of the arguments before a command's own flags; its help lists the commands."""

    def format_help(self) -> str:
        return _full_parser(()).format_help()


def _top_level_parser() -> CommandParser:
    top_parser = _TopLevelParser(prog="mockube")
    _add_name_flag(top_parser)
    top_parser.add_argument("command")
    top_parser.add_argument("rest", nargs=argparse.REMAINDER)
    return top_parser


def _full_parser(complete_commands: Collection[str]) -> CommandParser:
    """Return a parser of all commands. The complete ones have their flags, for which their modules are imported."""
    full_parser = CommandParser(
        prog="mockube", description="A Kubernetes control plane in Python.", epilog=VARIABLES
    )
    _add_name_flag(full_parser)
    commands = full_parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        command_parser = commands.add_parser(command.name, help=command.summary)
        if command.name in complete_commands:
            command.add_flags(command_parser)
    return full_parser


def _add_name_flag(parser: CommandParser) -> None:
    parser.add_argument("-n", "--name", default=argparse.SUPPRESS, help=NAME_HELP)


def _report_os_error(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        # The reader has closed the pipe, as in `mockube demo | head -n 1`. Python would flush stdout, and fail, again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return signal_exit_code(signal.SIGPIPE)
    path = f"{error.filename}: " if error.filename else ""
    print(
        f"mockube: {path}{error.strerror or error} (run `mockube doctor` to check this machine)",
        file=sys.stderr,
    )
    return Code.ERROR
