"""`mockube explore SCENARIO -- CMD ...`: disturb an operator at every moment, and report what then is wrong."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mockube.component_base.counted import counted
from mockube.component_base.flags import non_negative_int, positive_int, seconds
from mockube.component_base.operating_system import os_problem
from mockube.component_base.printable import printable
from mockube.failure import Failure, UsageError

from .interruption import interrupted_by_sigterm
from .output import Code
from .parsing import CommandParser
from .progress import ERASE, print_line

if TYPE_CHECKING:
    from mockube.exploration.exploration import Options, Progress, SuspicionProgress
    from mockube.exploration.finding_files import FindingFolder
    from mockube.exploration.findings import OperatorFinding
    from mockube.exploration.run_outcome import RunOutcome

FOLDER = "findings"


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [FLAG ...] SCENARIO -- CMD [ARG ...]"
    parser.epilog = "The exit code is 1 if something was found, or if a plan to replay did not take place, and 2 if there was no exploration. docs/reference/explore.md describes scenarios and findings."
    parser.add_argument(
        "--budget", type=seconds, metavar="TIME", help="begin no plan after this time, such as 60s or 10m"
    )
    parser.add_argument("--plans", type=positive_int, default=200, help="the maximum number of plans (200)")
    parser.add_argument(
        "--seed", type=non_negative_int, default=0, help="another number has another order of plans (0)"
    )
    parser.add_argument(
        "--jobs",
        type=non_negative_int,
        default=0,
        help="how many runs there are at a time (three for each core, and up to twelve while the processors are idle)",
    )
    parser.add_argument(
        "--patience",
        type=seconds,
        metavar="TIME",
        help="how long a run whose end is not as expected may go on (2 to 10 seconds, more for an operator that pauses longer)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(FOLDER),
        metavar="DIR",
        help=f"folder for the files of findings ({FOLDER})",
    )
    parser.add_argument(
        "--tests",
        choices=("pytest", "go"),
        default="pytest",
        help="the language of the test that is written for each finding (pytest)",
    )
    parser.add_argument(
        "--replay", type=Path, metavar="FILE", help="run the plan of a finding again, instead of a scenario"
    )
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="the file of the scenario")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="the operator; it is run with KUBECONFIG set"
    )


def run(options: argparse.Namespace) -> int:
    scenario, command = _arguments(options)
    if options.replay is not None:
        _check_file(options.replay)
        return _run(lambda: _replay(options, scenario, command))
    if not scenario:
        raise UsageError("no scenario: use `mockube explore SCENARIO -- CMD ...`")
    if not command:
        raise UsageError("no command of an operator: use `mockube explore SCENARIO -- CMD ...`")
    _check_folder(options.output)
    _check_file(Path(scenario))
    return _run(lambda: _explore(options, scenario, command))


def _run(explore: Callable[[], int]) -> int:
    from mockube.exploration.learning import ScenarioFails  # noqa: PLC0415 - as below

    try:
        with interrupted_by_sigterm():
            return explore()
    except ScenarioFails as failure:
        for line in str(failure).splitlines():
            print_line(line)
        return Code.USAGE
    except UsageError:
        raise
    except Failure as failure:
        print_line(printable(str(failure)))
        return Code.USAGE


def _check_file(path: Path) -> None:
    """Raise UsageError for a file that cannot be read, before a whole control plane is imported."""
    try:
        path.open("rb").close()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _check_folder(folder: Path) -> None:
    """Raise UsageError for a folder into which no findings can be written."""
    absolute = folder.absolute()
    place = next(each for each in (absolute, *absolute.parents) if each.exists())
    if not place.is_dir():
        raise UsageError(f"--output: {place}: it is no folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(f"--output: {place}: the folder is not writable")


def _make_folder(folder: Path) -> None:
    """Make the folder of findings; raise UsageError if that is not possible, as in /proc, before the runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output: {folder}: {os_problem(error)}") from error


def _arguments(options: argparse.Namespace) -> tuple[str, Sequence[str]]:
    scenario, command = options.scenario or "", [*options.command]
    if scenario == "--":
        return "", command
    if command and command[0] != "--":
        raise UsageError(f"{command[0]}: the command of the operator stands behind --")
    return scenario, command[1:]


def _explore(options: argparse.Namespace, scenario: str, command: Sequence[str]) -> int:
    from mockube.exploration.api import lines_of, run_exploration  # noqa: PLC0415 - it imports a whole control plane
    from mockube.exploration.finding_files import FindingFolder  # noqa: PLC0415 - as above
    from mockube.exploration.findings import ExplorationCall  # noqa: PLC0415 - as above
    from mockube.exploration.scenario import read_scenario_file  # noqa: PLC0415 - as above
    from mockube.exploration.starters import CommandStarter  # noqa: PLC0415 - as above

    read = read_scenario_file(Path(scenario))
    call = ExplorationCall(scenario=Path(scenario), command=command, seed=options.seed)
    folder = FindingFolder(options.output, call, options.tests)
    output = _Output(folder)
    _make_folder(options.output)
    with closing(CommandStarter(command)) as starter:
        print_line("the scenario runs undisturbed first, each time until the operator is quiet")
        try:
            exploration = asyncio.run(
                run_exploration(read, starter, _options(options), output.show, output.add)
            )
        except BaseException:
            output.show_interrupted()
            with suppress(OSError):
                options.output.rmdir()  # if it is empty
            raise
    folder.end(exploration)
    _erase()
    for line in lines_of(exploration, folder.paths):
        print(line)
    return Code.ERROR if exploration.findings else Code.OK


class _Output:
    """Prints what an exploration shows, and writes findings as soon as they are confirmed."""

    def __init__(self, folder: "FindingFolder") -> None:
        self._folder = folder
        self._unconfirmed: set[str] = set()

    def show(self, progress: "Progress") -> None:
        from mockube.exploration.exploration import SuspicionProgress  # noqa: PLC0415 - as above

        if isinstance(progress, SuspicionProgress):
            text = printable(progress.finding.problems[0].text)
            self._unconfirmed.add(text)
            if progress.is_repaired:
                self._unconfirmed.discard(text)
        print_progress(progress)

    def add(self, finding: "OperatorFinding") -> None:
        text = printable(finding.problems[0].text)
        self._unconfirmed.discard(text)
        _erase()
        try:
            self._folder.add(finding)
        except OSError as error:
            print_line(f"a finding cannot be written: {text}")
            raise Failure(os_problem(error)) from error
        print_line(f"{self._folder.paths[-1].finding}: {text}")

    def show_interrupted(self) -> None:
        if self._folder.paths:
            paths = ", ".join(str(each.finding) for each in self._folder.paths)
            print_line(f"what was found until now: {paths}")
        for text in sorted(self._unconfirmed):
            print_line(f"not confirmed, and not written: {text}")


def _replay(options: argparse.Namespace, scenario: str, command: Sequence[str]) -> int:
    from mockube.exploration.api import run_replay  # noqa: PLC0415 - as above
    from mockube.exploration.findings import read_finding  # noqa: PLC0415 - as above
    from mockube.exploration.scenario import read_scenario_file  # noqa: PLC0415 - as above
    from mockube.exploration.starters import CommandStarter  # noqa: PLC0415 - as above

    replay = read_finding(options.replay)
    if not (command or replay.command):
        raise UsageError(
            f"{options.replay}: its operator is a function: use mockube.replay_finding(..., main=...) of Python"
        )
    read = read_scenario_file(Path(scenario) if scenario else replay.scenario)
    folder = None if command else replay.folder
    with closing(CommandStarter(command or replay.command, folder)) as starter:
        outcome, finding, _ = asyncio.run(run_replay(read, starter, _options(options), replay.plan))
    return print_replay(outcome, finding)


def print_replay(outcome: "RunOutcome", finding: "OperatorFinding | None") -> int:
    """Print what a plan shows again; a plan that did not take place is no success."""
    from mockube.exploration.api import replay_problem  # noqa: PLC0415 - as above
    from mockube.exploration.findings import report  # noqa: PLC0415 - as above

    problem = replay_problem(outcome)
    if problem:
        print(printable(problem))
    if finding is not None:
        for line in report(finding, 1):
            print(line)
    elif not problem:
        print("nothing is wrong")
    return Code.ERROR if finding is not None or problem else Code.OK


def _options(options: argparse.Namespace) -> "Options":
    from mockube.exploration.exploration import Options  # noqa: PLC0415 - as above

    return Options(
        seconds=options.budget,
        plans=options.plans,
        seed=options.seed,
        jobs=options.jobs,
        patience=options.patience,
        has_reports=options.replay is None,
    )


def print_progress(progress: "Progress") -> None:
    """Print what was learned and what may be a finding, and at a terminal how many runs have ended, in a line that the next one replaces."""
    from mockube.exploration.exploration import LearningProgress, SuspicionProgress  # noqa: PLC0415 - as above

    if isinstance(progress, SuspicionProgress):
        _erase()
        for line in suspicion_lines(progress):
            print_line(line)
        return
    if not isinstance(progress, LearningProgress):
        text = (
            f"{progress.done} of {progress.total} plans, {counted(progress.findings, 'finding', 'findings')}"
        )
    elif progress.writes is None:
        text = f"{progress.done} of {progress.total} undisturbed runs"
    else:
        _erase()
        print_line(
            f"{progress.writes} writes were learned from undisturbed runs, in {progress.seconds:.1f} s"
        )
        return
    if sys.stderr.isatty():
        print(f"{ERASE}{text}", end="", file=sys.stderr, flush=True)


def suspicion_lines(progress: "SuspicionProgress") -> Sequence[str]:
    finding = progress.finding
    text = printable(finding.problems[0].text)
    if progress.is_repaired:
        return [f"the operator repairs it later: {text}"]
    seen = f"seen again in {finding.confirmed} of {finding.repetitions} repetitions, after {finding.repeated_seconds:.0f} s"
    return [
        f"{seen}: {text}",
        *(f"  when {printable(part)}" for part in finding.plan.parts),
        "  it is a finding unless the operator repairs it, for which it has half a minute, or as long as it says until it tries again",
    ]


def _erase() -> None:
    if sys.stderr.isatty():
        print(ERASE, end="", file=sys.stderr, flush=True)
