"""`mockube report -o FILE`: write what happened in a cluster to one file."""

import argparse
import asyncio
from pathlib import Path

from mockube.component_base.printable import printable

from .output import check_writable
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access


def add_flags(parser: CommandParser) -> None:
    parser.epilog = (
        "A page has all objects, changes, requests, events and logs, and opens offline in a browser. Markdown and JSON have at most "
        "20 KiB: what is not healthy and why, what was refused, and who wrote last."
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="FILE",
        help="the file, whose name ends with .html, .md or .json",
    )
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    from mockube.report.writing import check_path, write_report  # noqa: PLC0415 - the help needs none of it

    check_path(options.output)
    check_writable(options.output)
    with convert_errors():
        asyncio.run(write_report(server_access(options), options.output))
    print(printable(str(options.output)))
    return 0
