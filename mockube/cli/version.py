"""`mockube version`."""

import argparse
from importlib.metadata import version

from mockube.cli.parsing import Parser


def add_flags(parser: Parser) -> None:
    """There are none."""


def run(_options: argparse.Namespace) -> int:
    print(version("mockube"))
    return 0
