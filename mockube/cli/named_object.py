"""The object of a command, as kubectl takes it: `pod/web` or `pod web`, and its namespace."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from mockube.failure import Missing, UsageError
from mockube.objects.errors import InvalidType, InvalidValue, KindNotServed
from mockube.objects.targets import ObjectName, read_target

from .parsing import CommandParser
from .shared_flags import add_namespace


def add_object(parser: CommandParser, help_text: str) -> None:
    """Add the object of a command, and its namespace. `object_target` reads them."""
    parser.add_argument("object", metavar="KIND/NAME", help=help_text)
    parser.add_argument(
        "object_name", nargs="?", metavar="NAME", help="the name, unless it is behind the slash"
    )
    add_namespace(parser, "its namespace (default)")


def object_target(options: argparse.Namespace) -> ObjectName:
    if options.object_name is not None and "/" in options.object:
        raise UsageError(f'"{options.object}" has a name already: leave out "{options.object_name}"')
    return read_target(options.object, options.object_name, options.namespace)


@contextmanager
def convert_name_errors() -> Iterator[None]:
    """Convert errors about the names of kinds and objects into Failure."""
    try:
        yield
    except (InvalidType, InvalidValue) as error:
        raise UsageError(str(error)) from error
    except KindNotServed as error:
        raise Missing(str(error)) from error
