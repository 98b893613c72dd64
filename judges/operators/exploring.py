"""Runs `mockube explore` with a scenario, and notes when a published bug is found."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, field

from judges.operators.bugs import Bug, Operator

LEARNED = "writes were learned from undisturbed runs"
_TICKS = os.sysconf("SC_CLK_TCK")
_POLL_SECONDS = 0.5
ENOUGH_PLANS = 100_000
"""More than a budget of time allows."""


class Found(Struct, frozen=True, kw_only=True):
    """A published bug in a finding: after how long, and with how much of the processors, since the undisturbed runs."""

    bug: Bug
    seconds: float
    """Until the finding was confirmed."""
    processor_seconds: float
    tree: Mapping[str, Any]
    """What the finding's file has."""
    path: Path


class Exploration(Struct, kw_only=True):
    learning_seconds: float = 0.0
    found: list[Found] = field(default_factory=list)
    findings: int = 0
    """The number of all findings, also of other mistakes, until the last bug was found."""
    end: str = ""
    """The last line that was printed, if the exploration has ended by itself."""


def explore(
    operator: Operator, scenario: str, bugs: Sequence[Bug], folder: Path, budget: float, flags: Sequence[str]
) -> Exploration:
    """Explore until all bugs are found, or until the budget is used up."""
    name = Path(scenario).stem
    output, log = folder / f"findings-{name}", folder / f"{name}.log"
    shutil.rmtree(output, ignore_errors=True)
    command = [
        sys.executable, "-m", "mockube", "explore", f"--budget={budget:g}s", f"--plans={ENOUGH_PLANS}",
        f"--output={output}", *operator.explore, *flags, scenario, "--", *operator.command,
    ]  # fmt: skip
    with (
        log.open("w") as file,
        subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT) as process,
    ):
        try:
            return _follow(process, output, log, bugs)
        finally:
            process.terminate()


def _follow(process: subprocess.Popen[bytes], output: Path, log: Path, bugs: Sequence[Bug]) -> Exploration:
    exploration, begun, used = Exploration(), time.monotonic(), 0.0
    left, read = [*bugs], set[Path]()
    while left:
        has_ended = _has_ended(process)
        if not exploration.learning_seconds and LEARNED in log.read_text(errors="replace"):
            exploration.learning_seconds = time.monotonic() - begun
            begun, used = time.monotonic(), processor_seconds(process.pid)
        for path in sorted({*output.glob("finding-*.yaml")} - read):
            tree = yaml.safe_load(path.read_text())
            if not is_complete(tree):
                continue
            read.add(path)
            shown = [bug for bug in left if bug.is_shown_by(tree)]
            left = [bug for bug in left if bug not in shown]
            seconds, processor = time.monotonic() - begun, processor_seconds(process.pid) - used
            exploration.found += [
                Found(bug=bug, seconds=seconds, processor_seconds=processor, tree=tree, path=path)
                for bug in shown
            ]
        exploration.findings = len(read)
        if has_ended:
            exploration.end = _last_line(log)
            break
    return exploration


def is_complete(tree: Any) -> bool:
    """Return whether a finding's file is whole, as its last field is there."""
    return isinstance(tree, Mapping) and "history" in tree


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def processor_seconds(process: int) -> float:
    """Return what a process, those below it, and those of them that have ended used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0.0
    own = sum(map(int, fields[11:15])) / _TICKS
    return own + sum(processor_seconds(int(child)) for child in children)
