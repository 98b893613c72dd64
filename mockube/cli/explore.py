"""`mockube explore SCENARIO -- CMD ...`: disturb an operator at every moment, and report what then is wrong."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from mockube.component_base.clock import RealClock
from mockube.component_base.flags import non_negative_int, positive_int, seconds
from mockube.component_base.printable import printable
from mockube.failure import UsageError

from .interruption import interrupted_by_sigterm
from .output import Code
from .parsing import CommandParser
from .progress import print_line

if TYPE_CHECKING:
    from mockube.exploration.explorer import Exploration, Options, PlanProgress
    from mockube.exploration.findings import OperatorFinding
    from mockube.exploration.plan_run import RunOutcome

FOLDER = "findings"


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [FLAG ...] SCENARIO -- CMD [ARG ...]"
    parser.epilog = "The exit code is 1 if something was found, or if a plan to replay did not take place. docs/guides/explore.md describes scenarios and findings."
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
        help="how many runs there are at a time (three for each core)",
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
        "--replay", type=Path, metavar="FILE", help="run the plan of a finding again, instead of a scenario"
    )
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="the file of the scenario")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="the operator; it is run with KUBECONFIG set"
    )


def run(options: argparse.Namespace) -> int:
    scenario, command = _arguments(options)
    if options.replay is not None:
        return _run(lambda: _replay(options, scenario, command))
    if not scenario:
        raise UsageError("no scenario: use `mockube explore SCENARIO -- CMD ...`")
    if not command:
        raise UsageError("no command of an operator: use `mockube explore SCENARIO -- CMD ...`")
    _check_folder(options.output)
    return _run(lambda: _explore(options, scenario, command))


def _run(explore: Callable[[], int]) -> int:
    from mockube.exploration.explorer import ScenarioFails  # noqa: PLC0415 - as below

    try:
        with interrupted_by_sigterm():
            return explore()
    except ScenarioFails as failure:
        for line in str(failure).splitlines():
            print_line(line)
        return Code.ERROR


def _check_folder(folder: Path) -> None:
    """Raise UsageError for a folder into which no findings can be written."""
    absolute = folder.absolute()
    place = next(each for each in (absolute, *absolute.parents) if each.exists())
    if not place.is_dir():
        raise UsageError(f"--output: {place}: it is no folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UsageError(f"--output: {place}: the folder is not writable")


def _arguments(options: argparse.Namespace) -> tuple[str, Sequence[str]]:
    scenario, command = options.scenario or "", [*options.command]
    if scenario == "--":
        return "", command
    if command and command[0] != "--":
        raise UsageError(
            f"{command[0]}: flags precede the scenario, and -- precedes the command of the operator"
        )
    return scenario, command[1:]


def _explore(options: argparse.Namespace, scenario: str, command: Sequence[str]) -> int:
    from mockube.exploration.api import lines_of, run_exploration  # noqa: PLC0415 - it imports a whole control plane
    from mockube.exploration.findings import remove_findings, write_finding  # noqa: PLC0415 - as above
    from mockube.exploration.scenario import read_scenario_file  # noqa: PLC0415 - as above
    from mockube.exploration.starters import CommandStarter  # noqa: PLC0415 - as above

    read = read_scenario_file(Path(scenario))
    paths: list[Path] = []

    def write(finding: "OperatorFinding") -> None:
        """Write a finding at once, as an exploration may be interrupted, in place of those of an earlier one."""
        if not paths:
            remove_findings(options.output)
        path = options.output / f"finding-{len(paths) + 1}.yaml"
        write_finding(
            path, finding, scenario=str(Path(scenario).resolve()), command=command, seed=options.seed
        )
        paths.append(path)

    with closing(CommandStarter(command)) as starter:
        print_line("the scenario runs undisturbed first, each time until the operator is quiet")
        try:
            exploration = asyncio.run(
                run_exploration(read, starter, _options(options), _print_progress, write)
            )
        except BaseException:
            if paths:
                print_line(f"what was found until now: {', '.join(map(str, paths))}")
            raise
    if not paths:
        remove_findings(options.output)
    _end_progress(exploration)
    for line in lines_of(exploration, paths):
        print(line)
    return Code.ERROR if exploration.findings else Code.OK


def _replay(options: argparse.Namespace, scenario: str, command: Sequence[str]) -> int:
    from mockube.exploration.explorer import Explorer, fork_runner  # noqa: PLC0415 - as above
    from mockube.exploration.findings import read_finding  # noqa: PLC0415 - as above
    from mockube.exploration.scenario import read_scenario_file  # noqa: PLC0415 - as above
    from mockube.exploration.starters import CommandStarter  # noqa: PLC0415 - as above

    replay = read_finding(options.replay)
    read = read_scenario_file(Path(scenario or replay.scenario))

    async def run_plan() -> int:
        with closing(CommandStarter(command or replay.command)) as starter:
            async with fork_runner(read, starter, RealClock()) as runner:
                outcome, finding = await Explorer(runner, _options(options)).replay(replay.plan)
        return print_replay(outcome, finding)

    return asyncio.run(run_plan())


def print_replay(outcome: "RunOutcome", finding: "OperatorFinding | None") -> int:
    """Print what a plan shows again; a plan that did not take place is no success."""
    from mockube.exploration.findings import report  # noqa: PLC0415 - as above

    says_nothing = bool(outcome.problem) or not outcome.is_applied
    if outcome.problem:
        print(printable(f"the plan could not be run: {outcome.problem}"))
    elif not outcome.is_applied:
        print("the plan did not take place: its moment did not come, or its object was not there")
    if finding is not None:
        for line in report(finding, 1):
            print(line)
    elif not says_nothing:
        print("nothing is wrong")
    return Code.ERROR if finding is not None or says_nothing else Code.OK


def _options(options: argparse.Namespace) -> "Options":
    from mockube.exploration.explorer import Options  # noqa: PLC0415 - as above

    return Options(
        seconds=options.budget,
        plans=options.plans,
        seed=options.seed,
        jobs=options.jobs,
        patience=options.patience,
    )


def _print_progress(progress: "PlanProgress") -> None:
    if sys.stderr.isatty():
        text = f"\r{progress.done} of {progress.total} plans, {progress.findings} findings"
        print(text, end="", file=sys.stderr, flush=True)


def _end_progress(exploration: "Exploration") -> None:
    if sys.stderr.isatty():
        print_line("")
    print_line(
        f"{exploration.writes} writes were learned from two undisturbed runs, in {exploration.learning_seconds:.1f} s"
    )
