"""`mockube kubeconfig`: print a cluster's kubeconfig or its path, or merge it into the one that kubectl reads."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from mockube.clusters import kubeconfigs
from mockube.clusters.named_cluster import find_cluster
from mockube.failure import Missing

from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_chosen_name, add_short_name
from .target import chosen_name


def add_flags(parser: CommandParser) -> None:
    add_chosen_name(parser)
    add_short_name(parser)
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--path", action="store_true", help="print the path of the kubeconfig")
    formats.add_argument(
        "--merge",
        action="store_true",
        help="merge it into the file that kubectl reads, $KUBECONFIG or ~/.kube/config, and make it "
        "the current context",
    )


def run(options: argparse.Namespace) -> int:
    folder = find_cluster(chosen_name(options), os.environ).folder
    if not folder.kubeconfig.exists():
        raise Missing(f'"{folder.name}" was never ready and has no kubeconfig')
    if options.merge:
        path = _kubectl_config(os.environ)
        kubeconfigs.merge(folder, path)
        print_line(f"{path} now contains the cluster: its current context is {folder.context}")
    elif options.path:
        print(folder.kubeconfig)
    else:
        print(folder.kubeconfig.read_text(), end="")
    return 0


def _kubectl_config(environment: Mapping[str, str]) -> Path:
    """Return the kubeconfig that kubectl writes: the first of $KUBECONFIG, or ~/.kube/config."""
    paths = [path for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    return Path(paths[0]) if paths else Path.home() / ".kube" / "config"
