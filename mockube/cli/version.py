"""`mockube version`: print the version."""

import argparse
import platform
from importlib.metadata import version

import msgspec

from mockube.apimachinery.schema import minors

from .parsing import CommandParser
from .shared_flags import add_output


def add_flags(parser: CommandParser) -> None:
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    mockube_version = version("mockube")
    if options.output == "json":
        from mockube.component_base.version import version as release  # noqa: PLC0415 - only needed with --output

        facts = {
            "mockube": mockube_version,
            "kubernetes": f"v{release()}",
            "kubernetesMinors": minors.MINORS,
            "python": platform.python_version(),
            "platform": platform.platform(),
        }
        print(msgspec.json.encode(facts).decode())
    else:
        print(mockube_version)
    return 0
