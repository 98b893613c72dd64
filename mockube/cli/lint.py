"""`mockube lint FILE...`: check objects and charts against the API servers of several minors."""

import argparse
import asyncio
import atexit
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn

from mockube.apimachinery import wellknown
from mockube.apimachinery.schema import minors
from mockube.component_base.clock import RealClock
from mockube.component_base.suggestions import did_you_mean
from mockube.failure import UsageError
from mockube.lint.minor_ranges import read_minors

from .output import Code, is_colored, table
from .parsing import CommandParser
from .progress import FrequentSteps, Progress, is_live
from .shared_flags import add_output

if TYPE_CHECKING:
    from mockube.lint.report import Report

FAIL_ON: Final = ("refused", "broken", "dropped", "warned", "never")
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
    parser.add_argument(
        "--disable",
        action="append",
        default=[],
        metavar="RULES",
        help="rules for several objects that are off, or all of them: all (none)",
    )
    parser.add_argument("--all", action="store_true", help="list the objects without findings, too")
    add_output(parser, "junit", "github", "sarif")
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
    # The interpreter would examine and free the objects of all servers at its end, long after the report is printed.
    atexit.register(gc.freeze)
    report = asyncio.run(_check(names, options))
    _print(report, options)
    return Code.ERROR if report.failed(options.fail_on) else Code.OK


async def _check(names: Sequence[str], options: argparse.Namespace) -> "Report":
    from mockube.lint.check import CheckOptions  # noqa: PLC0415 - these import the API server
    from mockube.lint.inputs import InputReader  # noqa: PLC0415
    from mockube.lint.renderers import ChartOptions, check_values  # noqa: PLC0415
    from mockube.lint.report import make_report  # noqa: PLC0415
    from mockube.lint.run import check_all, read_definitions  # noqa: PLC0415

    namespace = wellknown.NAMESPACE_DEFAULT if options.namespace is None else options.namespace
    chart_options = ChartOptions(release=options.release, namespace=namespace, flags=[*_helm_flags(options)])
    check_values(chart_options)
    with _progress() as on_step:
        definitions = read_definitions(options.crds)
        reader = InputReader(options.minors, chart_options, definitions=definitions, on_step=on_step)
        inputs = reader.read(names)
        if not any(inputs.values()):
            raise UsageError(f"no objects in {', '.join(names)}")
        check_options = CheckOptions(
            namespace=namespace,
            is_namespace_given=options.namespace is not None,
            ignores_unknown_kinds=options.ignore_unknown_kinds,
            packs=options.packs,
            definitions=definitions,
            release=options.release,
            disabled_rules=_disabled_rules(options.disable),
        )
        return make_report(inputs, await check_all(inputs, check_options, on_step))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show the steps of the check at a terminal. Most block the event loop, so that no timer could show the time."""
    if not is_live():
        yield lambda _: None
        return
    clock = RealClock()
    progress = Progress(sys.stderr, live=True, clock=clock)
    try:
        yield FrequentSteps(progress, clock).step
    finally:
        progress.done()


def _disabled_rules(texts: Sequence[str]) -> Sequence[str]:
    from mockube.lint.relations.rules import ALL, RULE_NAMES  # noqa: PLC0415 - as above

    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    for name in names:
        if name not in (ALL, *RULE_NAMES):
            raise UsageError(f"--disable: there is no rule {name}{did_you_mean(name, RULE_NAMES)}")
    return names


def _helm_flags(options: argparse.Namespace) -> Iterator[str]:
    for flag in HELM_FLAGS:
        for value in getattr(options, flag.strip("-").replace("-", "_")):
            yield f"{flag}={value}"


def _print(report: "Report", options: argparse.Namespace) -> None:
    from mockube.lint import ci_reports, machine_reports, text_report  # noqa: PLC0415 - as above

    reports = {
        "json": machine_reports.json_report,
        "junit": machine_reports.junit_report,
        "github": ci_reports.github_report,
        "sarif": ci_reports.sarif_report,
    }
    if options.output in reports:
        print(reports[options.output](report, options.fail_on))
    else:
        rows = text_report.table_rows(report, shows_all=options.all)
        parts = [table(rows), ""] if rows else []
        paint = text_report.colored if is_colored() else text_report.plain
        print("\n".join([*parts, *text_report.finding_lines(report, paint), text_report.summary(report)]))
