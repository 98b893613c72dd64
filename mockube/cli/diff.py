"""`mockube diff FROM [TO]`: the objects that differ between two moments."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence

from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.printable import printable
from mockube.history.differences import NOISE, ObjectDifference, differences
from mockube.history.field_values import unified_diff
from mockube.moments import find_moment

from .at import MOMENT_HELP
from .log import change_lines
from .parsing import CommandParser
from .shared_flags import add_namespace
from .target import add_server_flags, convert_errors, server_access


def add_flags(parser: CommandParser) -> None:
    parser.epilog = (
        f"Without --kind all kinds are compared but {' and '.join(NOISE)}, which change all the time."
    )
    parser.add_argument("moment", metavar="FROM", help=MOMENT_HELP)
    parser.add_argument("to", nargs="?", default="now", metavar="TO", help="another moment (now)")
    add_namespace(parser, "only this namespace (all)", "")
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="KIND[/NAME]",
        help="only this kind, or this object, such as deployment/web; may be repeated",
    )
    parser.add_argument("-p", "--patch", action="store_true", help="print the differences as YAML")
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        found = asyncio.run(_read(options))
    for each in found:
        for line in _lines(each, is_patch=options.patch):
            print(printable(line))
    return 0


async def _read(options: argparse.Namespace) -> Sequence[ObjectDifference]:
    access = server_access(options)
    async with open_client(access, RealClock()) as client:
        first, second = [await find_moment(client, text) for text in (options.moment, options.to)]
    return await differences(
        access,
        (first.revision, second.revision),
        namespace=options.namespace,
        kinds=[(kind, name) for kind, _, name in (each.partition("/") for each in options.kind)],
    )


def _lines(difference: ObjectDifference, *, is_patch: bool) -> Iterator[str]:
    resource, namespace, name = difference.identity
    place = f" -n {namespace}" if namespace else ""
    yield f"{difference.type} {resource}/{name}{place}"
    if is_patch:
        label = f"{resource}/{name}"
        yield from unified_diff(difference.before, difference.after, old=f"a/{label}", new=f"b/{label}")
    elif difference.type in ("MODIFIED", "REPLACED"):
        yield from change_lines(difference.changes())
