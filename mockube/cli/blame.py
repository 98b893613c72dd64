"""`mockube blame KIND/NAME`: for each field of an object who set or removed it, when, and what it was."""

import argparse

from mockube.history.blame import FieldOrigin, origins
from mockube.history.field_values import ABSENT, is_below, show

from .log import read_object_versions
from .named_object import add_object
from .output import table
from .parsing import CommandParser
from .target import add_server_flags

HEAD = ("REVISION", "TIME", "USER", "VERB", "FIELD", "VALUE", "WAS", "REQUEST")


def add_flags(parser: CommandParser) -> None:
    add_object(parser, "the object, such as deployment/web")
    parser.add_argument(
        "--field", default="", metavar="PATH", help="only a field and its parts, as spec.template"
    )
    add_server_flags(parser)


def run(options: argparse.Namespace) -> int:
    _, _, versions = read_object_versions(options)
    found = [each for each in origins(versions) if not options.field or is_below(each.path, options.field)]
    print(table([HEAD, *map(_row, found)]))
    return 0


def _row(origin: FieldOrigin) -> tuple[str, ...]:
    version, value = origin.version, show(origin.value)
    if version is None:
        return ("-", "-", "-", "-", origin.path, value, "", "")
    was = "" if origin.before is ABSENT else show(origin.before)
    author = version.author
    time = version.time.partition(".")[0]
    return (
        str(version.revision),
        f"{time}Z" if time and not time.endswith("Z") else time,
        author.get("user", "-"),
        author.get("verb", "-"),
        origin.path,
        value,
        was,
        author.get("auditID", ""),
    )
