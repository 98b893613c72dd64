"""`mockube crds PACK`: print the CustomResourceDefinitions of a pack, for any API server."""

import argparse

from mockube.apiserver.packs.definitions import PACKS, definitions
from mockube.cli.parsing import Parser


def add_flags(parser: Parser) -> None:
    parser.add_argument("pack", choices=[*PACKS], help="the pack")


def run(options: argparse.Namespace) -> int:
    print(b"---\n".join(definitions(options.pack)).decode(), end="")
    return 0
