"""`mockube demo`: demonstrate the store."""

import argparse
import asyncio
import sys

from .parsing import CommandParser


def add_flags(parser: CommandParser) -> None:
    """Add no flags."""


def run(_options: argparse.Namespace) -> int:
    from mockube.demonstration import demonstrate  # noqa: PLC0415 - the store is imported only for this command

    asyncio.run(demonstrate(sys.stdout))
    return 0
