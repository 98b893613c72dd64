"""`mockube doctor`: check this machine for problems."""

import argparse
import os

import msgspec

from mockube.checkup import CheckResult, run_checks
from mockube.component_base.clock import RealClock

from .output import Code
from .parsing import CommandParser
from .shared_flags import add_output


def add_flags(parser: CommandParser) -> None:
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    findings = [*run_checks(os.environ, RealClock())]
    if options.output == "json":
        tree = [
            {"check": name, "verdict": finding.verdict, "words": finding.message}
            for name, finding in findings
        ]
        print(msgspec.json.encode(tree).decode())
    else:
        for name, finding in findings:
            print(f"{finding.verdict:5}  {name}: {finding.message}")
    return Code.UNHEALTHY if any(finding.verdict is CheckResult.WRONG for _, finding in findings) else Code.OK
