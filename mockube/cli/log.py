"""`mockube log KIND/NAME`: the writes of an object, the newest first, with their authors and what they changed."""

import argparse
import asyncio
from collections.abc import Iterator, Sequence

from mockube.client.discovery import DiscoveredResource
from mockube.client.resources import Key
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import positive_int
from mockube.component_base.printable import printable
from mockube.failure import Missing
from mockube.history.authors import program_of, verb_of
from mockube.history.field_values import FieldChange, is_below, unified_diff
from mockube.history.versions import Version, read_versions
from mockube.objects.resource_names import ResourceNames

from .named_object import add_object, convert_name_errors, object_target
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access

MAX_LINES = 12
"""The changed fields of a write that are printed without -p."""


def add_flags(parser: CommandParser) -> None:
    add_object(parser, "the object, such as deployment/web")
    parser.add_argument("-p", "--patch", action="store_true", help="print the differences as YAML")
    parser.add_argument(
        "--field", default="", metavar="PATH", help="only writes that change a field, such as spec.replicas"
    )
    parser.add_argument(
        "--limit", type=positive_int, metavar="NUMBER", help="only so many writes, the newest ones (all)"
    )
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    found, key, versions = read_object_versions(options)
    selected = [version for version in versions if not options.field or _changes(version, options.field)]
    for version in reversed(selected[-options.limit :] if options.limit else selected):
        for line in _lines(version, found, key, options):
            print(printable(line))
        print()
    if gap := gap_before(versions):
        print(gap)
    return 0


def gap_before(versions: Sequence[Version]) -> str:
    """Say that the history begins after the creation of an object; "" if it does not."""
    if versions[0].type == "ADDED":
        return ""
    return (
        "Earlier writes are not in the history of this server: `mockube up --history` sets how much is kept."
    )


def read_object_versions(
    options: argparse.Namespace,
) -> tuple[DiscoveredResource, Key, Sequence[Version]]:
    """Return the object of a command with its versions; raise Missing if there are none in the history."""
    with convert_errors(), convert_name_errors():
        found, key, versions = asyncio.run(_read(options))
    if not versions:
        raise Missing(
            f"{found.resource.plural}/{key.name} has no writes in the history of this server: mockube up --history=all keeps all"
        )
    return found, key, versions


async def _read(options: argparse.Namespace) -> tuple[DiscoveredResource, Key, Sequence[Version]]:
    target = object_target(options)
    async with open_client(server_access(options), RealClock()) as client:
        found = await ResourceNames(client).find(target.kind)
        key = Key(target.namespace if found.resource.namespaced else "", target.name)
        return found, key, await read_versions(client, found, key)


def _changes(version: Version, field: str) -> Sequence[FieldChange]:
    return [change for change in version.changes() if not field or is_below(change.path, field)]


def _lines(
    version: Version, found: DiscoveredResource, key: Key, options: argparse.Namespace
) -> Iterator[str]:
    yield f"revision {version.revision} {version.type}"
    yield f"Author: {author_of(version)}"
    if version.time:
        yield f"Date:   {version.time}"
    yield ""
    if version.problem:
        yield f"    (not known: {version.problem})"
    elif options.patch:
        label = f"{found.resource.plural}/{key.name}"
        diff = unified_diff(
            version.before, version.after, old=f"a/{label}", new=f"{version.revision}/{label}"
        )
        yield from diff
    else:
        yield from change_lines(_changes(version, options.field))


def change_lines(changes: Sequence[FieldChange]) -> Iterator[str]:
    """Yield a line for each changed field, up to a limit."""
    yield from (f"    {change}" for change in changes[:MAX_LINES])
    if len(changes) > MAX_LINES:
        yield f"    ... and {len(changes) - MAX_LINES} more fields: -p prints all"


def author_of(version: Version) -> str:
    author = version.author
    if not author:
        return "(not known: another server, or the end of a lifetime)"
    details = [verb_of(author), program_of(author)]
    return f"{author['user']} ({', '.join(filter(None, details))})"
