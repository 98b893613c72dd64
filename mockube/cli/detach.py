"""Run work in the background: a child process with its own session, which sends reports until it is ready.

The reports are lines on a pipe: their kind, a tab, and a message. If the pipe ends without a report of kind `ready`,
the process has exited, and its exit code is the result.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn, TypeAlias

from mockube.component_base.clock import RealClock
from mockube.component_base.inherited_descriptors import replace_descriptors
from mockube.component_base.launcher import die_with_parent
from mockube.component_base.operating_system import shell_exit_code
from mockube.component_base.process_fork import fork_beside_threads, reset_signals
from mockube.processes.child_processes import last_error_line

from .progress import Progress, is_live

STEP, REPORT, READY = "step", "say", "ready"
_STDIN, _STDOUT, _STDERR = range(3)
_LOG_OPEN_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


class Reports:
    """The child process's end of the pipe. Messages are also written to its log."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = os.fdopen(descriptor, "w")

    def step(self, message: str) -> None:
        self._report(STEP, message)

    def report(self, message: str) -> None:
        self._report(REPORT, message)

    def ready(self) -> None:
        """Send the last report: the work is ready."""
        self._report(READY, "")
        with suppress(BrokenPipeError):
            self._pipe.close()

    def _report(self, kind: str, message: str) -> None:
        print(message or kind, file=sys.stderr, flush=True)
        if not self._pipe.closed:
            with suppress(BrokenPipeError):  # the waiting process was killed
                self._pipe.write(f"{kind}\t{message}\n")
                self._pipe.flush()


Work: TypeAlias = Callable[[Reports], int]


def detach(work: Work, log: Path) -> int | None:
    """Run work in a child process; return None when it is ready, or its exit code if it exits before. Never returns in the child."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _detach_output(log)
        reports = Reports(writer)
        sys.exit(work(reports))
    os.close(writer)
    progress = Progress(sys.stderr, live=is_live(), clock=RealClock())
    last = asyncio.run(_follow(reader, child, progress))
    if last == READY:
        return None
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if last != REPORT:
        progress.report(f"it exited with code {code}: {last_error_line(log)}")
    return shell_exit_code(code)


async def detach_from_loop(work: Work, log: Path) -> tuple[int, Sequence[str]]:
    """Run work in a child of a process with a running event loop; return its id and its reports when it is ready, or 0 if it exits before.

    The child ends with this process, or if the caller is cancelled before it is ready, and shares no descriptor with it. Linux only.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    child = fork_beside_threads()
    if not child:
        _run_in_child(work, log, writer, parent)
    os.close(writer)
    reports, kind = [], ""
    try:
        async for kind, message in _read_reports(reader):
            if kind == REPORT:
                reports.append(message)
    except asyncio.CancelledError:
        os.kill(child, signal.SIGTERM)
        await asyncio.to_thread(os.waitpid, child, 0)
        raise
    if kind == READY:
        return child, reports
    await asyncio.to_thread(os.waitpid, child, 0)
    return 0, reports or [last_error_line(log)]


def _run_in_child(work: Work, log: Path, writer: int, parent: int) -> NoReturn:
    code = 1
    try:
        reset_signals()
        die_with_parent(parent, signal.SIGTERM)
        asyncio._set_running_loop(None)  # noqa: SLF001 - Python does it itself from 3.12 on
        replace_descriptors({_STDOUT, _STDERR, writer}, ())
        _detach_output(log)
        code = work(Reports(writer))
    except BaseException:  # noqa: BLE001 - the frames of the parent must not be unwound
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _detach_output(log: Path) -> None:
    """Start a session, and redirect stdin from the null device and the output to the log."""
    os.setsid()
    null_device, log_file = os.open(os.devnull, os.O_RDONLY), os.open(log, _LOG_OPEN_FLAGS, 0o600)
    for descriptor, replacement in ((_STDIN, null_device), (_STDOUT, log_file), (_STDERR, log_file)):
        os.dup2(replacement, descriptor)


async def _follow(reader: int, child: int, progress: Progress) -> str:
    """Print the reports, and return the kind of the last one. Stop signals are forwarded to the child."""
    loop = asyncio.get_running_loop()
    kind = ""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, os.kill, child, number)
    async for kind, message in _read_reports(reader):
        if kind in {STEP, REPORT}:
            {STEP: progress.step, REPORT: progress.report}[kind](message)
    progress.done()
    return kind


async def _read_reports(reader: int) -> AsyncIterator[tuple[str, str]]:
    """Yield the kinds and messages of reports until the pipe ends."""
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reader, "rb")
    )
    try:
        async for line in lines:
            kind, _, message = line.decode().rstrip("\n").partition("\t")
            yield kind, message
    finally:
        transport.close()
