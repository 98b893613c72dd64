"""Work that outlives the shell: it runs in a process with a session of its own, which reports until it is ready.

The reports are lines on a pipe: their kind, a tab, and a message. If the pipe ends without a report of kind `ready`,
the process has ended, and its exit code is the result.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from mockube.apimachinery.clock import RealClock
from mockube.cli.progress import Progress, is_live
from mockube.processes.child_processes import last_error_line, shell_code

STEP, REPORT, READY = "step", "say", "ready"
_STDIN, _STDOUT, _STDERR = range(3)
_MODE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


class Reports:
    """The working process's end of the pipe; its log gets the messages as well."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = os.fdopen(descriptor, "w")

    def step(self, message: str) -> None:
        self._report(STEP, message)

    def report(self, message: str) -> None:
        self._report(REPORT, message)

    def ready(self) -> None:
        """The last report."""
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
    """Return None once it is ready, or its exit code if it has ended before. In the working process it never returns."""
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
    return shell_code(code)


def _detach_output(log: Path) -> None:
    """Close the terminal and write to the log."""
    os.setsid()
    null_device, written = os.open(os.devnull, os.O_RDONLY), os.open(log, _MODE, 0o600)
    for mine, instead in ((_STDIN, null_device), (_STDOUT, written), (_STDERR, written)):
        os.dup2(instead, mine)


async def _follow(reader: int, child: int, progress: Progress) -> str:
    """Print the reports and return the last one's kind. Ctrl+C is passed on to the child."""
    loop = asyncio.get_running_loop()
    kind = ""
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reader, "rb"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, os.kill, child, number)
    async for line in lines:
        kind, _, message = line.decode().rstrip("\n").partition("\t")
        if kind in {STEP, REPORT}:
            {STEP: progress.step, REPORT: progress.report}[kind](message)
    progress.done()
    return kind
