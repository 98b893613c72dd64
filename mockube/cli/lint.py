"""`mockube lint FILE...`: check objects and charts against the API servers of several minors."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from mockube.apimachinery.schema import minors
from mockube.component_base.clock import RealClock
from mockube.failure import UsageError
from mockube.lint.minor_ranges import read_minors

from .output import Code, is_colored, table
from .parsing import CommandParser
from .progress import Progress, is_live
from .shared_flags import add_output

if TYPE_CHECKING:
    from mockube.lint.findings import LintResult
    from mockube.lint.report import Report

Results: TypeAlias = "Mapping[str, Sequence[LintResult]]"

FAIL_ON: Final = ("refused", "dropped", "warned", "never")
HELM_FLAGS: Final = ("--values", "--set", "--set-string", "--set-file", "--api-versions")


class _RefusedFlag(argparse.Action):
    """A flag that means a manifest to kubectl, and the values of a chart to helm."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        parser.error("there is no -f: name manifests without a flag, and the values of a chart by --values")


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="YAML or JSON file, folder, kustomization, or chart (a folder or .tgz); - reads stdin",
    )
    parser.add_argument("-f", "--filename", action=_RefusedFlag, help=argparse.SUPPRESS)
    parser.add_argument(
        "--minors",
        type=read_minors,
        default="all",
        metavar="MINORS",
        help=f"minor releases, such as 1.33,1.35 or 1.29-1.31 or 1.34- (all: {minors.OLDER[-1]}-{minors.NEWEST})",
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="dropped",
        help="the least severe outcome with exit code 1: refused includes removed and unknown kinds (dropped)",
    )
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        metavar="NS",
        help="namespace of objects that name none (default)",
    )
    parser.add_argument(
        "--crds",
        action="append",
        default=[],
        metavar="FILE",
        help="file or folder with CustomResourceDefinitions that the cluster has; they are not checked",
    )
    parser.add_argument(
        "--packs", default="", metavar="NAMES", help="packs of kinds that the cluster has (none)"
    )
    parser.add_argument(
        "--ignore-unknown-kinds",
        action="store_true",
        help="skip custom resources without a definition; without this flag they are refused",
    )
    parser.add_argument("--all", action="store_true", help="list the objects without findings, too")
    add_output(parser, "junit")
    chart = parser.add_argument_group("charts")
    chart.add_argument(
        "--release", default="release-name", metavar="NAME", help="name of the release (release-name)"
    )
    for flag in HELM_FLAGS:
        chart.add_argument(
            flag, action="append", default=[], metavar="VALUE", help=f"{flag} of `helm template`"
        )


def run(options: argparse.Namespace) -> int:
    names = options.files
    if not names:
        raise UsageError("no file: use `mockube lint FILE...`, or `-` for standard input")
    report = _check(names, options)
    _print(report, options)
    return Code.ERROR if report.failed(options.fail_on) else Code.OK


def _check(names: Sequence[str], options: argparse.Namespace) -> "Report":
    from mockube.lint.check import CheckOptions  # noqa: PLC0415 - these import the API server
    from mockube.lint.inputs import InputReader  # noqa: PLC0415
    from mockube.lint.renderers import ChartOptions, check_values  # noqa: PLC0415
    from mockube.lint.report import make_report  # noqa: PLC0415
    from mockube.lint.run import check_all, read_definitions  # noqa: PLC0415

    chart_options = ChartOptions(
        release=options.release, namespace=options.namespace, flags=[*_helm_flags(options)]
    )
    check_values(chart_options)
    inputs = InputReader(options.minors, chart_options).read(names)
    if not any(inputs.values()):
        raise UsageError(f"no objects in {', '.join(names)}")
    check_options = CheckOptions(
        namespace=options.namespace,
        ignores_unknown_kinds=options.ignore_unknown_kinds,
        packs=options.packs,
        definitions=read_definitions(options.crds),
    )
    return make_report(inputs, asyncio.run(_with_progress(partial(check_all, inputs, check_options))))


async def _with_progress(
    check: Callable[[Callable[[str], None]], Awaitable[Results]],
) -> Results:
    """Show at a terminal which minor is being checked."""
    progress = Progress(sys.stderr, live=is_live(), clock=RealClock())
    try:
        return await check(lambda minor: progress.step(f"checking against {minor}") if is_live() else None)
    finally:
        progress.done()


def _helm_flags(options: argparse.Namespace) -> Iterator[str]:
    for flag in HELM_FLAGS:
        for value in getattr(options, flag.strip("-").replace("-", "_")):
            yield f"{flag}={value}"


def _print(report: "Report", options: argparse.Namespace) -> None:
    from mockube.lint import machine_reports, text_report  # noqa: PLC0415 - as above

    if options.output == "json":
        print(machine_reports.json_report(report, options.fail_on))
    elif options.output == "junit":
        print(machine_reports.junit_report(report, options.fail_on))
    else:
        rows = text_report.table_rows(report, shows_all=options.all)
        parts = [table(rows), ""] if rows else []
        paint = text_report.colored if is_colored() else text_report.plain
        print("\n".join([*parts, *text_report.finding_lines(report, paint), text_report.summary(report)]))
