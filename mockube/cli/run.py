"""`mockube run -- CMD ...`: run one command with a temporary cluster."""

import argparse
import asyncio
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from mockube import kubectl
from mockube.clusters.forks import ForkSupervisor, StartedFork
from mockube.clusters.logs import Tail, merge_lines
from mockube.clusters.named_cluster import MEMORY, ClusterFolder
from mockube.clusters.profiles import Profile
from mockube.clusters.spec import ClusterSpec
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import non_negative_int
from mockube.component_base.klog import DEBUG_VERBOSITY
from mockube.component_base.launcher import NOT_FOUND
from mockube.container_runtime.simulation_values import PROCESS
from mockube.failure import UsageError
from mockube.launch import MINIMAL, LaunchOptions

from .output import check_writable, program_name
from .parsing import CommandParser
from .progress import print_line
from .shared_flags import (
    CLUSTER,
    START_TIMES,
    add_cluster_flags,
    add_profile,
    add_runtime,
    check_control_planes,
    version_flags,
)


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [FLAG ...] -- CMD [ARG ...]"
    add_cluster_flags(parser.group(CLUSTER))
    add_profile(parser.group(CLUSTER), MINIMAL)
    add_runtime(parser)
    parser.add_argument(
        "--scheduler-config",
        type=Path,
        metavar="FILE",
        help="file with a KubeSchedulerConfiguration (the default profile)",
    )
    parser.add_argument(
        "--history",
        type=_read_history,
        metavar="HISTORY",
        help="how much past to keep: 1h, 9000, 64Mi or all",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write what happened in the cluster to a file when the command has ended, whatever its exit code: a name with .html, .md or "
        ".json; the cluster keeps all of its history for it, unless --history is set (none)",
    )
    parser.add_argument(
        "-v",
        "--v",
        type=non_negative_int,
        nargs="?",
        default=0,
        const=START_TIMES,
        metavar="LEVEL",
        help=f"log level; {START_TIMES}: how long the start takes, {DEBUG_VERBOSITY}: the logs of both processes with "
        f"debug messages (0; bare -v: {START_TIMES})",
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="the command; it is run with KUBECONFIG set"
    )


def run(options: argparse.Namespace) -> int:
    from mockube.clusters.health import read_not_simulated  # noqa: PLC0415 - as below
    from mockube.processes.run_command import RunReports, run_once  # noqa: PLC0415 - it starts processes

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UsageError("no command: use `mockube run -- CMD ...`")
    if shutil.which(command[0]) is None and os.sep not in command[0]:
        return _report_missing(command)
    if options.report is not None:
        from mockube.report.writing import check_path  # noqa: PLC0415 - as below

        check_path(options.report)
        check_writable(options.report)
    check_control_planes(options, options.profile)
    check_images(options.images, has_processes=options.container_runtime == PROCESS)
    launch = LaunchOptions(
        nodes=options.simulate_nodes,
        packs=options.packs,
        flags=(*version_flags(options), *_level_flags(options), *_history_flags(options)),
        manager_flags=manager_flags(options),
        profile=options.profile,
        control_planes=options.control_planes,
    )
    return asyncio.run(
        run_once(
            command,
            options=launch,
            clock=RealClock(),
            serve_forks=partial(_serve_forks, launch),
            reports=RunReports(
                line=print_line,
                note=print_line if options.v >= START_TIMES else lambda _: None,
                read_not_simulated=read_not_simulated,
                print_logs=_print_logs if options.v >= DEBUG_VERBOSITY else lambda _: None,
                write_report=partial(_write_report, options.report, command),
            ),
        )
    )


async def _write_report(path: Path | None, command: Sequence[str], kubeconfig: Path, code: int) -> None:
    """Write the report of a run; a problem is reported, and does not change how the run ends."""
    if path is None:
        return
    from mockube.client.kubeconfig import read  # noqa: PLC0415 - few runs have a report
    from mockube.report.recording import Subject  # noqa: PLC0415 - as above
    from mockube.report.writing import write_report  # noqa: PLC0415 - as above

    subject = Subject(title=shlex.join(["mockube", "run", "--", *command]), result=f"exit code {code}")
    try:
        await write_report(read(kubeconfig), path, subject, ends_faults=True)
    except Exception as error:  # noqa: BLE001 - the exit code of the command is worth more than its report
        print_line(f"the report {path} was not written: {str(error) or type(error).__name__}")
    else:
        print_line(f"the report of the cluster is {path}")


def _serve_forks(launch: LaunchOptions, folder: Path) -> AbstractAsyncContextManager[Path | None]:
    """Start forks of the cluster, which end with the command."""
    parent = ClusterFolder(name=f"{program_name()} run", path=folder)
    spec = ClusterSpec(
        version="",  # it is read when there is a fork
        nodes=launch.nodes,
        packs=launch.packs,
        flags=launch.flags,
        manager_flags=launch.manager_flags,
        store=MEMORY,
        profile=Profile(launch.profile, launch.control_planes),
    )
    return ForkSupervisor(parent, spec, _start_fork).running()


async def _start_fork(folder: ClusterFolder, spec: ClusterSpec) -> StartedFork:
    from importlib.metadata import version  # noqa: PLC0415 - most runs have no forks

    from .detached_cluster import start_fork  # noqa: PLC0415 - as above

    return await start_fork(folder, replace(spec, version=version("mockube")))


def _report_missing(command: Sequence[str]) -> int:
    """Report that the program does not exist, before a cluster is started for it; return the exit code of a shell."""
    hint = ""
    if command[0] == kubectl.KUBECTL:
        hint = f": {kubectl.how_to_install()}"
    elif any(argument.startswith("--image") for argument in command):
        hint = f": for the run of kubectl, type `mockube {shlex.join([kubectl.KUBECTL, 'run', *command])}`"
    print_line(f"{command[0]}: command not found{hint}")
    return NOT_FOUND


def _print_logs(folder: Path) -> None:
    """Print the logs of both processes, which are deleted with the cluster."""
    tails = [Tail(path, path.stem) for path in sorted(folder.glob("*.log"))]
    sys.stderr.writelines(merge_lines(tails))


def _history_flags(options: argparse.Namespace) -> Sequence[str]:
    history = options.history or ("" if options.report is None else "all")
    return (f"--history={history}",) if history else ()


def _read_history(text: str) -> str:
    from mockube.apiserver.config.history import read_history  # noqa: PLC0415 - most runs keep what is kept by default

    read_history(text)
    return text


def _level_flags(options: argparse.Namespace) -> Sequence[str]:
    return (f"--v={options.v}",) if options.v else ()


_IMAGES_VARIABLE: Final = "MOCKUBE_CONTROLLER_MANAGER_IMAGES"
"""The environment variable that the controller manager reads in place of --images."""


def check_images(path: Path | None, *, has_processes: bool) -> None:
    """Refuse an invalid file of images, and processes without one, before anything starts."""
    if path is None:
        if has_processes and _IMAGES_VARIABLE not in os.environ:
            raise UsageError(
                f"--container-runtime={PROCESS} needs --images: a file that says which command of this machine each image runs"
            )
        return
    from mockube.container_runtime.images.table import ImageTableError, load_table  # noqa: PLC0415 - rarely needed

    try:
        is_empty = not load_table(path, has_processes=has_processes) and not has_processes
    except ImageTableError as error:
        raise UsageError(f"--images: {error}") from error
    if is_empty:
        raise UsageError(f"--images: {path} has no images")


def manager_flags(options: argparse.Namespace) -> Sequence[str]:
    images = () if options.images is None else (f"--images={options.images.absolute()}",)
    scheduler = options.scheduler_config
    scheduler_flags = () if scheduler is None else (f"--scheduler-config={scheduler.absolute()}",)
    return (
        *version_flags(options),
        *_level_flags(options),
        f"--container-runtime={options.container_runtime}",
        f"--pod-network={options.pod_network}",
        f"--unknown-programs={options.unknown_programs}",
        f"--unknown-images={options.unknown_images}",
        *images,
        *scheduler_flags,
    )
