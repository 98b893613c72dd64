"""`mockube.explore`: an exploration from Python, with an operator that is a command or a function."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TypeVar

from mockube.component_base.clock import RealClock
from mockube.component_base.counted import counted
from mockube.component_base.printable import printable
from mockube.failure import Failure
from mockube.objects.arguments import read_count, read_seconds

from .exploration import Exploration, Options, ShowFinding, ShowProgress
from .explorer import Explorer
from .finding_files import FindingFolder, FindingPaths
from .findings import ExplorationCall, OperatorFinding, read_finding, report
from .fork_runner import fork_runner
from .plans import PLANS, Plan
from .run_outcome import RunOutcome
from .scenario import Scenario, read_scenario, read_scenario_file
from .starters import CommandStarter, FunctionStarter, Starter

T = TypeVar("T")
NOT_APPLIED: Final = "the plan did not take place: its moment did not come, or its object was not there"


def explore(  # noqa: PLR0913 - each is an option of the exploration
    scenario: "str | os.PathLike[str] | Mapping[str, Any]",
    command: Sequence[str] = (),
    *,
    main: Callable[[str], Any] | None = None,
    plans: int = PLANS,
    budget: float | None = None,
    seed: int = 0,
    jobs: int = 0,
    patience: float | None = None,
    output: str | os.PathLike[str] | None = None,
) -> "ExplorationReport":
    """Run an operator in forks of a cluster, disturb each run at another moment, and return what then is wrong.

    `scenario` is the path of a file, or its content as a dict, whose paths are relative to the current folder. The operator is a
    command, or a function `main` that runs it with the path of a kubeconfig until its process ends. At most `plans` plans are tried,
    and none is begun after `budget` seconds; `jobs` of them run at a time. Another `seed` has another order of plans.
    `output` is a folder for the files of findings: what replays each, a test, and a page with the timelines of both runs.
    """
    __tracebackhide__ = True
    if bool(command) == (main is not None):
        raise TypeError("explore needs either a command or main")
    options = Options(
        plans=read_count(plans, "plans", minimum=1),
        seconds=None if budget is None else read_seconds(budget, "budget"),
        seed=read_count(seed, "seed"),
        jobs=read_count(jobs, "jobs"),
        patience=None if patience is None else read_seconds(patience, "patience"),
        has_reports=output is not None,
    )
    read = (
        read_scenario(scenario, Path.cwd())
        if isinstance(scenario, Mapping)
        else read_scenario_file(Path(scenario))
    )
    folder = None if output is None else _finding_folder(output, scenario, command, main, options.seed)
    starter: Starter = FunctionStarter(main) if main is not None else CommandStarter(command)
    show_finding = _ignore if folder is None else folder.add
    with closing(starter):
        exploration = _run(lambda: run_exploration(read, starter, options, show_finding=show_finding))
    if folder is None:
        return ExplorationReport(exploration)
    folder.end(exploration)
    return ExplorationReport(exploration, folder.paths)


def _finding_folder(
    output: str | os.PathLike[str],
    scenario: "str | os.PathLike[str] | Mapping[str, Any]",
    command: Sequence[str],
    main: Callable[[str], Any] | None,
    seed: int,
) -> FindingFolder:
    if isinstance(scenario, Mapping):
        raise TypeError("output needs a scenario in a file, which the files of findings name")
    function = "" if main is None else _function_name(main)
    call = ExplorationCall(scenario=Path(scenario), command=command, function=function, seed=seed)
    return FindingFolder(Path(output), call)


def _ignore(_: object) -> None:
    """Do nothing."""


def _function_name(main: Callable[[str], Any]) -> str:
    """Return the name of a function by which a test can import it."""
    module, name = getattr(main, "__module__", ""), getattr(main, "__qualname__", "")
    if module in ("", "__main__") or not name.isidentifier():
        raise TypeError("output needs a main that a test can import: a function of a module")
    return f"{module}:{name}"


def replay_finding(
    path: str | os.PathLike[str],
    command: Sequence[str] = (),
    *,
    main: Callable[[str], Any] | None = None,
    patience: float | None = None,
) -> "ExplorationReport":
    """Run the plan of a finding's file again, and return what is wrong still.

    The operator is that of the file, another command, or the function `main`. It is an error if the plan does not take place,
    as when a changed operator does not send the write any more at which it disturbs: that shows nothing.
    """
    __tracebackhide__ = True
    if command and main is not None:
        raise TypeError("replay_finding needs a command or main, and not both")
    replay = read_finding(Path(path))
    options = Options(patience=None if patience is None else read_seconds(patience, "patience"))
    scenario = read_scenario_file(replay.scenario)
    starter: Starter
    if main is not None:
        starter = FunctionStarter(main)
    elif command or replay.command:
        starter = CommandStarter(command or replay.command, None if command else replay.folder)
    else:
        raise TypeError("the operator of this finding is a function: replay_finding needs main")
    with closing(starter):
        outcome, finding, exploration = _run(lambda: run_replay(scenario, starter, options, replay.plan))
    if problem := replay_problem(outcome):
        raise Failure(problem)
    exploration.findings = [] if finding is None else [finding]
    return ExplorationReport(exploration)


def replay_problem(outcome: RunOutcome) -> str:
    """Return why the run of a replay shows nothing; "" if it does."""
    if outcome.problem:
        return f"the plan could not be run: {outcome.problem}"
    return "" if outcome.is_applied else NOT_APPLIED


async def run_replay(
    scenario: Scenario, starter: Starter, options: Options, plan: Plan
) -> tuple[RunOutcome, OperatorFinding | None, Exploration]:
    async with fork_runner(scenario, starter, RealClock()) as runner:
        explorer = Explorer(runner, options)
        outcome, finding = await explorer.replay(plan)
        return outcome, finding, explorer.result


async def run_exploration(
    scenario: Scenario,
    starter: Starter,
    options: Options,
    show_progress: ShowProgress = lambda _: None,
    show_finding: ShowFinding = lambda _: None,
) -> Exploration:
    async with fork_runner(scenario, starter, RealClock()) as runner:
        return await Explorer(runner, options, show_progress, show_finding).explore()


class ExplorationReport:
    """What an exploration has found. Its text is the report."""

    def __init__(self, exploration: Exploration, paths: Sequence[FindingPaths] = ()) -> None:
        self.exploration, self._paths = exploration, paths

    @property
    def findings(self) -> Sequence[OperatorFinding]:
        """What is wrong: each has `problems`, the smallest `plan` that shows them, and `history`, ten lines of what happened. Empty if nothing is."""
        return self.exploration.findings

    def __repr__(self) -> str:
        return "\n".join(lines_of(self.exploration, self._paths))


def lines_of(exploration: Exploration, paths: Sequence[FindingPaths] = ()) -> Iterator[str]:
    """Yield the report of an exploration."""
    for number, finding in enumerate(exploration.findings, 1):
        yield from report(finding, number, paths[number - 1].lines() if paths else ())
        yield ""
    yield from (printable(f"note: {note}") for note in exploration.notes)
    found = len(exploration.findings)
    yield f"{counted(found, 'finding', 'findings')} in {counted(exploration.runs, 'plan', 'plans')}, in {exploration.seconds:.1f} s"
    if exploration.coverable:
        yield f"covered: {exploration.coverage()}"
    if number := exploration.not_applied:
        yield f"{counted(number, 'plan', 'plans')} did not take place: the moment did not come, or the object was not there"
    for problem, number in exploration.not_judged.items():
        yield f"{counted(number, 'plan', 'plans')} could not be judged: {problem}"
    if number := exploration.repaired_later:
        yield f"{counted(number, 'problem', 'problems')} the operator itself repaired later: left out"
    if number := exploration.not_seen_again:
        yield f"{counted(number, 'suspicion', 'suspicions')} did not show again in three repetitions: left out"


def _run(start: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, in a thread of its own if this one has a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(start())).result()
