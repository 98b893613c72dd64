"""The command `mockube`: arguments in, an exit code out.

Answers go to stdout and errors to stderr. It ends with 0 where it did what was asked and with 2 where it was asked
wrongly, which is argparse's choice.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from apimachinery.clock import RealClock
from apimachinery.packs.definitions import PACKS, definitions
from mockube.demonstration import play
from mockube.plane.launch import KRUISE, NODES, Launch, control_plane, python
from mockube.plane.once import run_once

KUBECONFIG = Path(".mockube", "kubeconfig")

NODES_HELP = f"how many nodes to simulate ({NODES})"
PACKS_HELP = f"kinds to serve besides Kubernetes' own ({KRUISE})"

READY = """mockube {version}: a Kubernetes cluster is ready, with {nodes} simulated nodes. In another shell:

  export KUBECONFIG={kubeconfig}
  kubectl get nodes
  kubectl create deployment web --image=nginx --replicas=3
  kubectl get pods -o wide

It is gone when this ends, unless `--data-dir DIR` keeps it; `mockube up --help` says what else can be set.
Ctrl+C ends it."""


def up(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="mockube up", add_help=False, allow_abbrev=False)
    parser.add_argument("--simulate-nodes", type=int, default=NODES, metavar="N", help=NODES_HELP)
    parser.add_argument("--packs", default=KRUISE, metavar="NAMES", help=PACKS_HELP)
    options, rest = parser.parse_known_args(arguments)
    if {"-h", "--help"} & {*rest}:
        print(parser.format_help(), flush=True)
        return subprocess.call(python("apiserver", "--help"))  # noqa: S603 - all of it stands here
    kubeconfig = KUBECONFIG.absolute()

    def say() -> None:
        print(
            READY.format(version=version("mockube"), kubeconfig=kubeconfig, nodes=options.simulate_nodes),
            flush=True,
        )

    plane = control_plane(
        Launch(kubeconfig=kubeconfig, nodes=options.simulate_nodes, packs=options.packs, flags=rest)
    )
    return asyncio.run(plane.supervise(once_ready=say))


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="mockube run", allow_abbrev=False)
    parser.add_argument("--simulate-nodes", type=int, default=NODES, metavar="N", help=NODES_HELP)
    parser.add_argument("--packs", default=KRUISE, metavar="NAMES", help=PACKS_HELP)
    parser.add_argument("-v", action="store_true", help="say how long the start takes")
    parser.add_argument("command", nargs="+", metavar="CMD", help="what to run, with KUBECONFIG set")
    options = parser.parse_args(arguments)

    def tell(what: str) -> None:
        if options.v:
            print(f"mockube: {what}", file=sys.stderr)

    return asyncio.run(
        run_once(
            options.command, nodes=options.simulate_nodes, packs=options.packs, clock=RealClock(), tell=tell
        )
    )


def demo(_arguments: Sequence[str]) -> int:
    asyncio.run(play(sys.stdout))
    return 0


def show_definitions(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="mockube crds", allow_abbrev=False)
    parser.add_argument("pack", choices=PACKS, help="whose kinds")
    pack = parser.parse_args(arguments).pack
    print(b"---\n".join(definitions(pack)).decode(), end="")
    return 0


def show_version(_arguments: Sequence[str]) -> int:
    print(version("mockube"))
    return 0


COMMANDS = {
    "up": (up, "start a cluster, and say what to type next; takes the API server's flags"),
    "run": (run, "run one command with a cluster of its own: mockube run -- CMD ..."),
    "crds": (show_definitions, "print the definitions of a pack's kinds, for any API server"),
    "demo": (demo, "show the store at work"),
    "version": (show_version, "print the version"),
}


THEIR_OWN = frozenset({"crds", "run", "up"})
"""Commands that read the rest of the command line themselves, --help included."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mockube", description="A Kubernetes control plane in Python.")
    commands = parser.add_subparsers(title="commands", dest="command", required=True)
    for name, (_, summary) in COMMANDS.items():
        description = f"{summary.capitalize()}."
        commands.add_parser(name, help=summary, description=description, add_help=name not in THEIR_OWN)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    parsed, rest = parser.parse_known_args(argv)
    if rest and parsed.command not in THEIR_OWN:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    command, _ = COMMANDS[parsed.command]
    try:
        code = command(rest)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone, as in `mockube demo | head -n 1`. Python would flush, and fail, once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE  # as shells tell it
    return code
