"""`mockube run -- CMD`: a control plane for one command, which ends with the command.

The command shares the terminal: it receives the signal of Ctrl+C directly, and decides whether to exit. Other stop
signals are sent to it as SIGTERM; a second one kills all processes.
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct

from mockube.component_base.clock import Clock
from mockube.component_base.operating_system import shell_exit_code
from mockube.component_base.supervision import wait_first
from mockube.failure import TimedOut
from mockube.launch import IN_CLUSTER_VARIABLES, KUBECONFIG_VARIABLES, LaunchOptions

from .child_processes import Report, exit_message
from .control_plane import ControlPlane, Launch, NotReady, control_plane, start_import, temporary_launch

START_TIMEOUT: Final = 300.0
MAX_REPORTED: Final = 10
"""The maximum number of programs that are reported at the end."""


ServeForks: TypeAlias = Callable[[Path], AbstractAsyncContextManager[Path | None]]
"""Returns a block in which forks of the cluster with its files in a folder are started, with the socket for that; None where there are no forks."""


class RunReports(Struct, frozen=True, kw_only=True):
    """What a run reports."""

    line: Report
    note: Report
    """For the times of milestones."""
    read_not_simulated: Callable[[Path], Sequence[str]]
    """Returns the programs that were not simulated, by the path of the kubeconfig; they are reported at the end."""
    print_logs: Callable[[Path], None]
    """Called with the folder of the logs before it is deleted."""
    write_report: Callable[[Path, int], Coroutine[Any, Any, None]]
    """Called with the path of the kubeconfig and the exit code of the command, while the cluster still runs."""


async def run_once(
    command: Sequence[str],
    *,
    options: LaunchOptions,
    clock: Clock,
    reports: RunReports,
    serve_forks: ServeForks,
) -> int:
    """Run a command with a temporary cluster, and return its exit code, as in a shell."""
    began = clock.monotonic()

    def note_time(milestone: str) -> None:
        reports.note(f"{milestone} after {clock.monotonic() - began:.2f} s")

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mockube-")))
        socket = await stack.enter_async_context(serve_forks(folder))
        launch = temporary_launch(folder, options, () if socket is None else ("--fork-socket", str(socket)))
        plane = control_plane(launch, clock=clock, report=reports.line)
        plane.handle_signals()
        code = None
        client_import = start_import("mockube.cluster_client")
        try:
            async with plane.running():
                client = await client_import
                await wait_first(
                    client.wait_usable(
                        launch.kubeconfig,
                        launch.nodes,
                        clock=clock,
                        report=note_time,
                        controllers=launch.controllers,
                        control_planes=launch.control_planes if launch.is_kubeadm else 0,
                        seconds=START_TIMEOUT,
                    ),
                    plane.wait_until_stopped(),
                )
                if not plane.is_over:
                    code = await _run(command, plane, launch)
                    await wait_first(
                        reports.write_report(launch.kubeconfig, code), plane.wait_until_stopped()
                    )
                    lines = await asyncio.to_thread(reports.read_not_simulated, launch.kubeconfig)
                    _report_not_simulated(lines, reports.line)
        except TimeoutError:
            raise TimedOut(f"the cluster was not ready within {START_TIMEOUT:g} s") from None
        except NotReady:
            pass
        reports.print_logs(launch.logs)
        own = plane.code(stopped=128 + plane.stopped_by)
        if plane.failed:
            reports.line(exit_message(plane.failed, own))
        return own if code is None else code


def _report_not_simulated(lines: Sequence[str], report: Report) -> None:
    """Report the programs that pods should have run and that are not simulated."""
    if lines:
        report(f"{len(lines)} program{'s were' if len(lines) > 1 else ' was'} not simulated:")
    for line in lines[:MAX_REPORTED]:
        report(f"  {line}")


async def _run(command: Sequence[str], plane: ControlPlane, launch: Launch) -> int:
    if _shares_terminal():
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
    environment = {
        **dict.fromkeys(KUBECONFIG_VARIABLES, str(launch.kubeconfig)),
        **dict.fromkeys(IN_CLUSTER_VARIABLES),
    }
    async with plane.processes.start(command, environment) as process:
        await wait_first(process.wait(), plane.wait_until_stopped())
    assert process.returncode is not None
    return shell_exit_code(process.returncode)


def _shares_terminal() -> bool:
    """Return whether the terminal sends the signal of Ctrl+C to the command, too."""
    return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
