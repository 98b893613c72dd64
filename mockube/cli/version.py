"""`mockube version`."""

import argparse
import platform
from importlib.metadata import version

import msgspec

from mockube.apimachinery.schema import minors
from mockube.cli.parsing import Parser
from mockube.cli.shared_flags import add_output


def add_flags(parser: Parser) -> None:
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    mine = version("mockube")
    if options.output == "json":
        from mockube.apimachinery.version import version as release  # noqa: PLC0415 - for few

        facts = {
            "mockube": mine,
            "kubernetes": f"v{release()}",
            "kubernetesMinors": minors.MINORS,
            "python": platform.python_version(),
            "platform": platform.platform(),
        }
        print(msgspec.json.encode(facts).decode())
    else:
        print(mine)
    return 0
