"""`mockube ui`: open the page of a cluster in a browser."""

import argparse
import asyncio
import os
import sys
import webbrowser

from mockube import control_objects
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock

from .output import program_name
from .parsing import CommandParser
from .progress import print_line
from .target import add_server_flags, convert_errors, server_access


def add_flags(parser: CommandParser) -> None:
    parser.add_argument("--no-open", action="store_true", help="print the URL, and open no browser")
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        url = asyncio.run(_url(options))
    print(url, flush=True)
    if options.no_open or not _has_screen() or not webbrowser.open(url):
        print_line(
            f"open this URL within five minutes; it works once, `{program_name()} ui` prints another one"
        )
    return 0


async def _url(options: argparse.Namespace) -> str:
    """Return the URL of the page, with a one-time token."""
    access = server_access(options)
    async with open_client(access, RealClock()) as client:
        return access.server.rstrip("/") + await control_objects.page_path(client)


def _has_screen() -> bool:
    """Return whether a browser would have a window: a browser in the terminal runs no scripts."""
    if "BROWSER" in os.environ or sys.platform in ("darwin", "win32"):
        return True
    return "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
