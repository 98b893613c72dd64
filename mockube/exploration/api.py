"""`mockube.explore`: an exploration from Python, with an operator that is a command or a function."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from mockube.component_base.clock import RealClock
from mockube.component_base.printable import printable
from mockube.objects.arguments import read_count, read_seconds

from .explorer import Exploration, Explorer, Options, ShowFinding, ShowProgress, fork_runner
from .findings import OperatorFinding, report
from .plans import PLANS
from .scenario import Scenario, read_scenario, read_scenario_file
from .starters import CommandStarter, FunctionStarter, Starter


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
) -> "ExplorationReport":
    """Run an operator in forks of a cluster, disturb each run at another moment, and return what then is wrong.

    `scenario` is the path of a file, or its content as a dict, whose paths are relative to the current folder. The operator is a
    command, or a function `main` that runs it with the path of a kubeconfig until its process ends. At most `plans` plans are tried,
    and none is begun after `budget` seconds; `jobs` of them run at a time. Another `seed` has another order of plans.
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
    )
    read = (
        read_scenario(scenario, Path.cwd())
        if isinstance(scenario, Mapping)
        else read_scenario_file(Path(scenario))
    )
    starter: Starter = FunctionStarter(main) if main is not None else CommandStarter(command)
    with closing(starter):
        return ExplorationReport(_run(lambda: run_exploration(read, starter, options)))


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

    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration

    @property
    def findings(self) -> Sequence[OperatorFinding]:
        """What is wrong: each has `problems`, the smallest `plan` that shows them, and `history`, ten lines of what happened. Empty if nothing is."""
        return self.exploration.findings

    def __repr__(self) -> str:
        return "\n".join(lines_of(self.exploration))


def lines_of(exploration: Exploration, paths: Sequence[Path | None] = ()) -> Iterator[str]:
    """Yield the report of an exploration."""
    for number, finding in enumerate(exploration.findings, 1):
        yield from report(finding, number, paths[number - 1] if paths else None)
        yield ""
    yield from (printable(f"note: {note}") for note in exploration.notes)
    found = len(exploration.findings)
    yield f"{found} finding{'' if found == 1 else 's'} in {exploration.runs} plans, in {exploration.seconds:.1f} s"
    yield f"covered: {exploration.coverage()}"
    if exploration.not_applied:
        yield f"{exploration.not_applied} plans did not take place: their moment did not come, or their object was not there"
    for problem, count in exploration.not_judged.items():
        yield f"{count} plans could not be judged: {problem}"
    if exploration.not_seen_again:
        yield f"{exploration.not_seen_again} findings were not seen again in three repetitions, and are left out"


def _run(start: Callable[[], Coroutine[Any, Any, Exploration]]) -> Exploration:
    """Run a coroutine to its end, in a thread of its own if this one has a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(start())).result()
