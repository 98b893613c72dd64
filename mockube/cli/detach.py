"""Work that outlives the shell: done by a process in a session of its own, which reports until it is ready.

The reports are lines on a pipe: a word that says what kind it is, a tab, and what is said. When the pipe is at its end
without the word that all is ready, the process has ended, and its exit code is the answer.
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
from mockube.processes.child_processes import shell_code
from mockube.processes.supervised_process import last_error_line

STEP, SAY, READY = "step", "say", "ready"
_STDIN, _STDOUT, _STDERR = range(3)
_MODE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


class Reports:
    """The end of the process that works: what it says goes to its log as well."""

    def __init__(self, descriptor: int) -> None:
        self._pipe = os.fdopen(descriptor, "w")

    def step(self, what: str) -> None:
        self._report(STEP, what)

    def say(self, what: str) -> None:
        self._report(SAY, what)

    def ready(self) -> None:
        """The last report."""
        self._report(READY, "")
        with suppress(BrokenPipeError):
            self._pipe.close()

    def _report(self, kind: str, what: str) -> None:
        print(what or kind, file=sys.stderr, flush=True)
        if not self._pipe.closed:
            with suppress(BrokenPipeError):  # whoever waited was killed
                self._pipe.write(f"{kind}\t{what}\n")
                self._pipe.flush()


Work: TypeAlias = Callable[[Reports], int]


def detach(work: Work, log: Path) -> int | None:
    """None once it is ready; its exit code if it has ended before. In the process that works it never returns."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _leave(log)
        reports = Reports(writer)
        sys.exit(work(reports))
    os.close(writer)
    progress = Progress(sys.stderr, live=is_live(), clock=RealClock())
    last = asyncio.run(_follow(reader, child, progress))
    if last == READY:
        return None
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if last != SAY:
        progress.say(f"it has ended with code {code}: {last_error_line(log)}")
    return shell_code(code)


def _leave(log: Path) -> None:
    """Hold nothing of the terminal."""
    os.setsid()
    nothing, written = os.open(os.devnull, os.O_RDONLY), os.open(log, _MODE, 0o600)
    for mine, instead in ((_STDIN, nothing), (_STDOUT, written), (_STDERR, written)):
        os.dup2(instead, mine)


async def _follow(reader: int, child: int, progress: Progress) -> str:
    """Show what is reported; answers with what kind the last report was. Ctrl+C is passed on."""
    loop = asyncio.get_running_loop()
    kind = ""
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reader, "rb"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, os.kill, child, number)
    async for line in lines:
        kind, _, what = line.decode().rstrip("\n").partition("\t")
        if kind in {STEP, SAY}:
            {STEP: progress.step, SAY: progress.say}[kind](what)
    progress.done()
    return kind
