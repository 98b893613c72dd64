"""`mockube test-operator -f FILE --sample=FILE -- CMD`: make the twelve judgements that every operator should pass."""

import argparse
import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mockube.apimachinery import wellknown
from mockube.apimachinery.schema import minors
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import positive_int
from mockube.component_base.suggestions import did_you_mean
from mockube.failure import UsageError
from mockube.lint.minor_ranges import read_minors

from .interruption import interrupted_by_sigterm
from .output import Code, table
from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_output

if TYPE_CHECKING:
    from mockube.judging.findings import OperatorReport
    from mockube.judging.inputs import Account
    from mockube.judging.trial_cluster import Setup

FORMATS: Final = {".json": "json", ".xml": "junit", ".sarif": "sarif", ".md": "markdown", ".html": "html"}
FAIL_ON: Final = ("error", "warning", "note")
HELM_FLAGS: Final = ("--values", "--set")


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} -f FILE --sample=FILE [FLAG ...] -- CMD [ARG ...]"
    parser.epilog = "The command is started with KUBECONFIG, as the service account of the operator. A judgement that cannot be made says why."
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="file, folder, kustomization or chart that installs the operator",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="the command of the operator"
    )
    parser.add_argument(
        "--sample",
        action="append",
        default=[],
        metavar="FILE",
        help="file with a custom resource, and with what it needs",
    )
    parser.add_argument(
        "--previous", action="append", default=[], metavar="FILE", help="manifests of the version before"
    )
    parser.add_argument("--previous-command", metavar="CMD", help="the command of the version before (CMD)")
    parser.add_argument(
        "-n",
        "--namespace",
        default=wellknown.NAMESPACE_DEFAULT,
        metavar="NS",
        help="namespace of objects that name none (default)",
    )
    parser.add_argument(
        "--service-account",
        metavar="NS/NAME",
        help="the service account of the operator (that of its workload in the manifests)",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAMES",
        help="judgements to make besides install (all)",
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="NAMES", help="judgements to leave out (none)"
    )
    parser.add_argument(
        "--resources",
        type=positive_int,
        default=1000,
        metavar="N",
        help="number of custom resources of the judgement growth (1000)",
    )
    parser.add_argument(
        "--fields",
        type=positive_int,
        default=30,
        metavar="N",
        help="number of fields that the judgement updates changes, at most (30)",
    )
    parser.add_argument(
        "--timeout",
        type=positive_int,
        default=90,
        metavar="SECONDS",
        help="how long the operator may take to reach a state (90)",
    )
    parser.add_argument(
        "--jobs",
        type=positive_int,
        default=1,
        metavar="N",
        help="number of judgements at the same time; more than one needs an operator without ports of its own (1)",
    )
    parser.add_argument(
        "--minors",
        type=read_minors,
        default="all",
        metavar="MINORS",
        help="minor releases of the judgement releases, such as 1.33,1.35 or 1.34- (all); the newest one is always compared, too",
    )
    parser.add_argument(
        "--webhook-service",
        type=_webhook_service,
        action="append",
        default=[],
        metavar="NS/NAME=HOST:PORT",
        help="where the operator serves the webhooks of a Service",
    )
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="file of known findings, which are no reason to fail"
    )
    parser.add_argument(
        "--write-baseline", action="store_true", help="write all findings into the file of --baseline"
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        help="the least severe finding with exit code 1 (error)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="also write a report into a file: .json, .xml (JUnit), .sarif, .md or .html",
    )
    parser.add_argument("--details", action="store_true", help="print what each judgement did, too")
    add_output(parser, "junit", "sarif", "markdown", "html")
    chart = parser.add_argument_group("charts")
    chart.add_argument(
        "--release", default="release-name", metavar="NAME", help="name of the release (release-name)"
    )
    for flag in HELM_FLAGS:
        chart.add_argument(
            flag, action="append", default=[], metavar="VALUE", help=f"{flag} of `helm template`"
        )


def _webhook_service(text: str) -> str:
    """Return the flag of a server; refuse another one before the first judgement."""
    from mockube.apiserver.config.admission_plugins import service_addresses  # noqa: PLC0415 - as below

    service_addresses(text)
    return text


def run(options: argparse.Namespace) -> int:
    from mockube.judging.baseline import (  # noqa: PLC0415 - these import the API server
        Baseline,
        baseline_text,
        read_baseline,
    )
    from mockube.judging.context import Context  # noqa: PLC0415
    from mockube.judging.findings import OperatorReport  # noqa: PLC0415
    from mockube.judging.reports import REPORTS  # noqa: PLC0415
    from mockube.judging.run import judge_all  # noqa: PLC0415

    _check_files(options)
    names = options.filename
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    chosen = _chosen(options)
    baseline = Baseline(findings=[])
    if options.baseline is not None and (options.baseline.exists() or not options.write_baseline):
        baseline = read_baseline(options.baseline)
    setup = _setup(options, names, command)
    # Clusters that end warn of what is cancelled, on stderr if nothing handles it.
    logging.getLogger("mockube").addHandler(logging.NullHandler())
    with interrupted_by_sigterm():
        context = Context(setup=setup, on_step=print_line)
        judgements = judge_all(context, chosen, jobs=options.jobs)
    report = OperatorReport(
        operator=shlex.join(command),
        judgements=judgements,
        known=baseline.fingerprints(),
        set_up=context.set_up,
        files=names,
    )
    try:  # files first, as whoever reads the output may end; and the output also if the disk is full
        if options.write_baseline:
            options.baseline.write_text(baseline_text(report, baseline))
            print_line(f"{options.baseline} accepts these findings now")
        for path in options.report:
            path.write_text(f"{REPORTS[FORMATS[path.suffix]](report, options.fail_on)}\n")
    finally:
        make = REPORTS.get(options.output)
        print(_table(report, options) if make is None else make(report, options.fail_on))
    is_failed = report.failed(options.fail_on) and not options.write_baseline
    return Code.ERROR if is_failed else Code.OK


def _check_files(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before hours of judgements and not after them."""
    for path in options.report:
        if path.suffix not in FORMATS:
            raise UsageError(f"--report: {path}: the name must end with {', '.join(FORMATS)}")
        _check_folder("--report", path)
    if options.write_baseline and options.baseline is None:
        raise UsageError("--write-baseline needs --baseline=FILE")
    if options.write_baseline:
        _check_folder("--baseline", options.baseline)


def _check_folder(flag: str, path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{flag}: {path}: the folder does not exist")


def _chosen(options: argparse.Namespace) -> Sequence[str]:
    from mockube.judging.run import NAMES  # noqa: PLC0415 - it imports the API server

    only, skipped = (
        _names(texts, flag, NAMES) for texts, flag in ((options.only, "--only"), (options.skip, "--skip"))
    )
    return [name for name in only or NAMES if name not in skipped]


def _names(texts: Sequence[str], flag: str, known: Sequence[str]) -> Sequence[str]:
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    if texts and not names:
        raise UsageError(f"{flag} names no judgement; there are {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UsageError(f"{flag}: there is no judgement {name}{did_you_mean(name, known)}")
    return names


def _setup(options: argparse.Namespace, names: Sequence[str], command: Sequence[str]) -> "Setup":
    from mockube.judging.inputs import read_release, read_sample  # noqa: PLC0415
    from mockube.judging.trial_cluster import Setup  # noqa: PLC0415
    from mockube.lint.renderers import ChartOptions  # noqa: PLC0415 - these import the API server
    from mockube.operators.process import check_command  # noqa: PLC0415

    if not names:
        raise UsageError("-f is missing: it names what installs the operator")
    if not command:
        raise UsageError("no command: use `mockube test-operator -f FILE --sample=FILE -- CMD ...`")
    if not options.sample:
        raise UsageError("--sample is missing: it names a file with a custom resource of the operator")
    check_command(command)
    flags = [f"{flag}={value}" for flag in HELM_FLAGS for value in getattr(options, flag.strip("-"))]
    chart = ChartOptions(release=options.release, namespace=options.namespace, flags=flags)
    chosen = [*dict.fromkeys([*options.minors, minors.NEWEST])]
    release = read_release(names, chosen, chart, command=command)
    previous = None
    if options.previous:
        own = shlex.split(options.previous_command) if options.previous_command else command
        check_command(own)
        previous = read_release(options.previous, [minors.NEWEST], chart, command=own)
    return Setup(
        release=release,
        sample=read_sample(options.sample, release.trees(), chart),
        namespace=options.namespace,
        clock=RealClock(),
        previous=previous,
        account=_account(options.service_account),
        webhook_services=options.webhook_service,
        timeout=options.timeout,
        resources=options.resources,
        fields=options.fields,
    )


def _account(text: str | None) -> "Account | None":
    from mockube.judging.inputs import Account  # noqa: PLC0415 - it imports the API server

    if text is None:
        return None
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name):
        raise UsageError(f'--service-account: "{text}" is not NAMESPACE/NAME')
    return Account(namespace=namespace, name=name)


def _table(report: "OperatorReport", options: argparse.Namespace) -> str:
    from mockube.judging import text_report  # noqa: PLC0415 - as above

    lines = text_report.finding_lines(report, shows_details=options.details)
    return "\n".join(
        [table(text_report.table_rows(report)), *lines, "", text_report.summary(report, options.fail_on)]
    )
