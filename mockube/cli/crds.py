"""`mockube crds PACK`: print the CustomResourceDefinitions of a pack, for any API server."""

import argparse

from mockube.apiserver.packs.definitions import PACKS, definitions
from mockube.cli.parsing import CommandParser


def add_flags(parser: CommandParser) -> None:
    parser.add_argument("pack", choices=[*PACKS], help="the pack")


def run(options: argparse.Namespace) -> int:
    print(b"---\n".join(definitions(options.pack)).decode(), end="")
    return 0
