"""`mockube requests`: print the requests that were sent to a server, or those that arrive."""

import argparse
import asyncio
from typing import Final

from mockube import control_objects
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.printable import printable
from mockube.control_objects import REQUESTS

from .output import table
from .parsing import CommandParser
from .shared_flags import spellings
from .target import add_server_flags, convert_errors, server_access

_CRITERIA: Final = {
    "user": "the name of the user",
    "verb": "the verb",
    "resource": "the resource, such as pods",
    "namespace": "the namespace of the object",
    "object": "the name of the object",
    "code": "the status code",
}


def add_flags(parser: CommandParser) -> None:
    parser.epilog = "The same by kubectl: `kubectl get requests --field-selector user=…,code=409 -w`."
    add_server_flags(parser)
    for name, text in _CRITERIA.items():
        parser.add_argument(*spellings(name), default="", metavar=name.upper(), help=f"{text} (all)")
    parser.add_argument(
        "-w", "--watch", action="store_true", help="print the requests that arrive from now on"
    )


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        asyncio.run(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    criteria = {"name" if name == "object" else name: getattr(options, name) for name in _CRITERIA}
    selector = control_objects.selector(criteria)
    async with open_client(server_access(options), RealClock()) as client:
        if not options.watch:
            print(table(await control_objects.find_table(client, REQUESTS.plural, selector)))
            return
        async for request in control_objects.watch_requests(client, selector):
            print(printable(line_of(request)), flush=True)


def line_of(request: ReadOnlyTree) -> str:
    spec, status = request["spec"], request.get("status") or {}
    fault = f" fault={status['fault']}" if "fault" in status else ""
    no_code = "cut" if status.get("isCut") else "---" if "seconds" in status else "..."
    return (
        f"{spec['time'][11:23]} {status.get('code', no_code)} {spec.get('verb', '-')} {spec.get('uri', '-')} "
        f"({spec.get('user', '')}, {spec.get('agent', '')}){fault}"
    )
