"""`mockube kubectl ARG...`: run the machine's kubectl with a cluster. kubectl replaces the process."""

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from mockube.clusters.named_cluster import cluster_folder, name_flag, running_cluster
from mockube.failure import Missing
from mockube.kubectl import KUBECTL, find_kubectl, how_to_install
from mockube.launch import NAME

from .parsing import CommandParser
from .target import add_server_flags


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [--name=NAME] [ARG ...]"
    parser.passes_flags = True
    add_server_flags(parser, short=False)
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="ARG",
        help="kubectl's command, its flags and arguments, as `get pods -n kube-system`",
    )


def run(options: argparse.Namespace) -> int:
    program = find_kubectl()
    environment = {**os.environ, "KUBECONFIG": str(_kubeconfig(options).absolute())}
    sys.stdout.flush()
    os.execve(program, [KUBECTL, *options.arguments[1:]], environment)  # noqa: S606 - it was found by its name


def _kubeconfig(options: argparse.Namespace) -> Path:
    if options.kubeconfig is not None:
        if not options.kubeconfig.exists():  # kubectl would use another cluster
            raise Missing(f"{options.kubeconfig}: No such file or directory")
        return Path(options.kubeconfig)
    folder, _ = running_cluster(options.name, os.environ)
    return folder.kubeconfig


def lines_to_type(options: argparse.Namespace, environment: Mapping[str, str]) -> str:
    """Return what to type instead of a command of kubectl that was given to mockube."""
    name, words = getattr(options, "name", NAME), [options.command, *options.rest]
    folder, line = cluster_folder(name, environment), shlex.join(words)
    flag = name_flag(name)
    with_mockube = f"  mockube kubectl{flag} {line}"
    if not folder.kubeconfig.exists():
        lines = [
            f'"{words[0]}" is a command of kubectl, and there is no cluster yet. Type',
            f"  mockube up --detach{flag}",
            with_mockube,
        ]
    else:
        lines = [
            f'"{words[0]}" is a command of kubectl. Type',
            with_mockube,
            "or",
            f"  export KUBECONFIG={shlex.quote(str(folder.kubeconfig))}",
            f"  kubectl {line}",
        ]
    if shutil.which(KUBECTL) is None:
        lines.append(f"kubectl is not installed: {how_to_install()}")
    return "\n".join(lines)
