"""One process's share of a run, and its restart when a case blocks the process.

A loop in C cannot be ended from within: a watchdog prints the stack of the current case and ends the process. The case
is on disk before it runs.
"""

import faulthandler
import multiprocessing
import os
import pickle
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import orjson

from tests.fuzz import engine
from tests.fuzz.targets import TARGETS

SLICE_SECONDS = 20.0
WATCHDOG_CPU_SECONDS = 60.0
"""Of one case; one that runs Python code is ended long before."""
WATCHDOG_SECONDS = 1800
"""Wall time, which other load stretches, for a case that waits and uses no CPU."""


@dataclass
class Share:
    """The targets of one process, run one after another, repeatedly."""

    names: list[str]
    seed: int
    folder: Path
    figures: dict[str, engine.Figures] = field(default_factory=dict)

    def run(self, seconds: float) -> dict[str, engine.Figures]:
        """Run until the time is over, in as many processes as needed."""
        end, seed = time.monotonic() + seconds, self.seed
        context = multiprocessing.get_context("spawn")
        while (left := end - time.monotonic()) > 1 or not self.figures:
            process = context.Process(target=run_share, args=(self.names, seed, max(left, 1), self.folder))
            process.start()
            process.join()
            self._gather()
            if process.exitcode == 0:
                break
            self._note_end(process.exitcode)
            seed += 1_000_000
        return self.figures

    def _gather(self) -> None:
        path = self.folder / "figures"
        if path.exists():
            for name, figures in pickle.loads(path.read_bytes()).items():
                self.figures.setdefault(name, engine.Figures()).add(figures)
            path.unlink()

    def _note_end(self, code: int | None) -> None:
        found = orjson.loads((self.folder / "case").read_bytes())
        trace = (self.folder / "trace").read_text(errors="replace")
        place = next((line for line in trace.splitlines() if str(engine.ROOT) in line), "").strip()
        finding = engine.Finding(
            f"no end, exit code {code}: {engine.normalised(place)}", found["case"], trace
        )
        self.figures.setdefault(found["target"], engine.Figures()).findings[finding.signature] = finding


def run_share(names: list[str], seed: int, seconds: float, folder: Path) -> None:
    """Run in a process of its own; each target's sequence of cases depends on the seed and on the outcomes."""
    os.nice(5)
    end = time.monotonic() + seconds
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    slice_seconds = max(0.5, min(SLICE_SECONDS, seconds / sum(TARGETS[name].weight for name in names) / 3))
    with (folder / "case").open("wb", buffering=0) as case_file, (folder / "trace").open("w") as trace_file:

        def before(name: str, text: bytes) -> None:
            case_file.seek(0)
            case_file.truncate()
            case_file.write(b'{"target":"%b","case":%b}' % (name.encode(), text))
            _watch(trace_file)

        # The default action, which ends the process, follows the stack.
        faulthandler.register(signal.SIGVTALRM, file=trace_file, chain=True)
        runners = [engine.Runner(TARGETS[name], seed, before=before) for name in names]
        while time.monotonic() < end:
            for runner in runners:
                with runner:
                    runner.run(seconds=min(slice_seconds * runner.target.weight, end - time.monotonic()))
                    _watch(trace_file)  # while the session is closed
                _end_watch()
                figures = runner.figures
                print(
                    f"{runner.target.name:20} {figures.examples:9} {len(figures.findings)} faults",
                    file=sys.stderr,
                )
                (folder / "figures").write_bytes(
                    pickle.dumps({one.target.name: one.figures for one in runners})
                )
                if time.monotonic() >= end:
                    break


def _watch(trace_file: IO[str]) -> None:
    """Limit the time until the next call."""
    signal.setitimer(signal.ITIMER_VIRTUAL, WATCHDOG_CPU_SECONDS)
    faulthandler.dump_traceback_later(WATCHDOG_SECONDS, exit=True, file=trace_file)


def _end_watch() -> None:
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    faulthandler.cancel_dump_traceback_later()
