"""The command `mockube`: arguments in, an exit code out.

Answers go to stdout and errors to stderr. It ends with 0 where it did what was asked and with 2 where it was asked
wrongly, which is argparse's choice.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version

from mockube.demonstration import play

OPENING = (
    "mockube {version}: its store at work. It is in memory: what is written here is gone when this ends."
)

CLOSING = """
That is the store. Above it runs the API server, which kubectl can connect to; the controller manager cannot be started
yet. What you can do next:

  python -m apiserver --write-kubeconfig kubeconfig    start the API server
  make test    run every test
  make bench   measure the store
  make help    see the rest"""


def up() -> None:
    print(OPENING.format(version=version("mockube")))
    asyncio.run(play(sys.stdout))
    print(CLOSING)


def show_version() -> None:
    print(version("mockube"))


COMMANDS = {
    "up": (up, "show what there is at work, and say what to type next"),
    "version": (show_version, "print the version"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mockube", description="A Kubernetes control plane in Python.")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    for name, (_, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, description=summary.capitalize() + ".")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    command, _ = COMMANDS[_parser().parse_args(argv).command]
    try:
        command()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as in `mockube up | head -n 1`. Python would flush, and fail, once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE  # as shells tell it
    return 0
