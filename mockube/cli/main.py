"""The command `mockube`: which command there is, and in what way all of them end.

A command is a file beside this one, with its flags and what it does; it is imported when it is called. Results go to
stdout, everything else to stderr.
"""

import argparse
import os
import signal
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from mockube.cli.output import Code, code_of, signal_exit_code
from mockube.cli.parsing import Parser, suggestion
from mockube.failure import Failure

VARIABLES = (
    "Each flag can also be set by an environment variable: --simulate-nodes by MOCKUBE_SIMULATE_NODES."
)
NAME_HELP = "the cluster's name (default)"


class Runnable(Protocol):
    """What the module of a command holds."""

    def add_flags(self, parser: Parser) -> None: ...

    def run(self, options: argparse.Namespace) -> int:
        """Answers with an exit code."""


class Command(NamedTuple):
    name: str
    summary: str
    module: str

    def load(self) -> Runnable:
        return cast("Runnable", import_module(f"mockube.cli.{self.module}"))

    def fill(self, parser: Parser) -> None:
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


def parser() -> Parser:
    """Every command with its flags, as one tree."""
    return _tree([*COMMANDS])


def main(argv: Sequence[str] | None = None) -> int:
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
    except Failure as failure:
        print(f"mockube: {failure}", file=sys.stderr)
        return code_of(failure)
    except OSError as error:
        return _unable(error)
    except KeyboardInterrupt:
        return signal_exit_code(signal.SIGINT)
    return code


def _dispatch(arguments: list[str]) -> int:
    front = _front_parser()
    if not arguments:
        front.print_help(sys.stderr)
        return Code.USAGE
    options = front.read(_expand_aliases(arguments), {})
    if options.command not in COMMANDS:
        front.error(f'unknown command "{options.command}"{suggestion(options.command, COMMANDS)}')
    command = COMMANDS[options.command]
    own = Parser(prog=f"mockube {command.name}")
    command.fill(own)
    before = {"name": options.name} if "name" in options else {}
    if before and "--name" not in own.flags():
        own.error("this command takes no --name")
    return command.load().run(own.read(options.rest, os.environ, argparse.Namespace(**before)))


def _expand_aliases(arguments: list[str]) -> list[str]:
    match arguments:
        case ["help", *words]:
            return [*words[:1], "--help"]
        case ["--version", *_]:
            return ["version"]
        case _:
            return arguments


class _Front(Parser):
    """What stands before a command's own flags; its help is that of the whole tree."""

    def format_help(self) -> str:
        return _tree(()).format_help()


def _front_parser() -> Parser:
    front = _Front(prog="mockube")
    _add_own(front)
    front.add_argument("command")
    front.add_argument("rest", nargs=argparse.REMAINDER)
    return front


def _tree(filled: Collection[str]) -> Parser:
    """The commands; those that are named have their flags, and were imported for it."""
    tree = Parser(prog="mockube", description="A Kubernetes control plane in Python.", epilog=VARIABLES)
    _add_own(tree)
    commands = tree.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS.values():
        command_parser = commands.add_parser(command.name, help=command.summary)
        if command.name in filled:
            command.fill(command_parser)
    return tree


def _add_own(top: Parser) -> None:
    top.add_argument("-n", "--name", default=argparse.SUPPRESS, help=NAME_HELP)


def _unable(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        # The reader has closed the pipe, as in `mockube demo | head -n 1`. Python would flush, and fail, once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return signal_exit_code(signal.SIGPIPE)
    path = f"{error.filename}: " if error.filename else ""
    print(
        f"mockube: {path}{error.strerror or error} (run `mockube doctor` to check this machine)",
        file=sys.stderr,
    )
    return Code.ERROR
