"""`mockube doctor`: what is wrong on this machine."""

import argparse
import os

import msgspec

from mockube.apimachinery.clock import RealClock
from mockube.checkup import CheckResult, look_around
from mockube.cli.output import Code
from mockube.cli.parsing import Parser
from mockube.cli.shared_flags import add_output


def add_flags(parser: Parser) -> None:
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    found = [*look_around(os.environ, RealClock())]
    if options.output == "json":
        tree = [{"check": name, "verdict": one.verdict, "words": one.words} for name, one in found]
        print(msgspec.json.encode(tree).decode())
    else:
        for name, one in found:
            print(f"{one.verdict:5}  {name}: {one.words}")
    return Code.UNHEALTHY if any(one.verdict is CheckResult.WRONG for _, one in found) else Code.OK
