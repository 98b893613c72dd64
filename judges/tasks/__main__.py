"""`make tasks`: run public tasks for operators and agents, and compare what a cluster shows with what their authors describe.

    python -m judges.tasks --tasks DIR --only k8s-ai-bench/fix-probes --jobs 4

DIR has the repositories that `tasks.yaml` names; others are cloned. The exit code is 1 if a step fails that is not listed, or
if one succeeds that is.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from judges.choices import require_some
from judges.clusters import running_cluster
from judges.repositories import checkout
from judges.suites.sources import SourceMissing
from judges.tasks.runner import STEPS, Outcome, Task, run_task

HERE = Path(__file__).parent


def main() -> int:
    options = _options()
    sets = read_sets()
    chosen = {
        name: tasks
        for name, settings in sets.items()
        if (tasks := [task for task in settings["tasks"] if _is_chosen(name, task, options.only)])
    }
    require_some(chosen, f"no task is named {' or '.join(options.only)}")
    unexpected = [run_set(name, sets[name], tasks, options) for name, tasks in chosen.items()]
    return int(any(unexpected))


def read_sets() -> Mapping[str, Any]:
    sets: Mapping[str, Any] = yaml.safe_load((HERE / "tasks.yaml").read_text())
    return sets


def run_set(name: str, settings: Mapping[str, Any], chosen: list[str], options) -> int:
    """Print a row for each task of a set; return the number of unexpected results."""
    with tempfile.TemporaryDirectory(prefix="mockube-tasks-") as text:
        source = Path(options.tasks).absolute() if options.tasks else None
        paths = [settings["folder"], *([settings["shared"]] if "shared" in settings else [])]
        try:
            folder = checkout(settings["repository"], paths, source, Path(text) / "checkout")
        except SourceMissing as error:
            print(f"{name}: {error}", flush=True)
            return 1
        form, root = settings["form"], folder / settings["folder"]
        tasks = [
            Task(
                name=task,
                folder=root if form == "injections" else root / task,
                **(settings["tasks"][task] or {}),
            )
            for task in chosen
        ]
        print(f"{name:44} {' '.join(f'{step:>6}' for step in STEPS)}", flush=True)
        counts, unexpected = Counter(), 0
        for nodes in sorted({task.nodes for task in tasks}):
            group = [task for task in tasks if task.nodes == nodes]
            with (
                running_cluster(("--profile=minimal", *options.flags), nodes) as (kubeconfig, _),
                ThreadPoolExecutor(options.jobs) as pool,
            ):
                run = partial(run_task, form=form, kubeconfig=kubeconfig, deploy=settings.get("deploy", ""))
                results = pool.map(run, group)
                for task, outcomes in zip(group, results, strict=True):
                    counts.update(step for step, outcome in outcomes.items() if outcome.succeeded)
                    unexpected += _print_row(task, outcomes)
    passed = ", ".join(f"{step} {counts[step]}" for step in STEPS)
    print(f"{len(tasks)} tasks: {passed}; {unexpected} results are unexpected\n", flush=True)
    return unexpected


def _print_row(task: Task, outcomes: Mapping[str, Outcome]) -> int:
    """Print the row of a task and why steps failed; return the number of unexpected results."""
    cells = ["-" if step not in outcomes else "ok" if outcomes[step].succeeded else "FAIL" for step in STEPS]
    print(f"{task.name:44} {' '.join(f'{cell:>6}' for cell in cells)}", flush=True)
    unexpected = 0
    for step, outcome in outcomes.items():
        if outcome.succeeded == (step in task.fails):
            unexpected += 1
            says = (
                "is listed as failing, and succeeds" if outcome.succeeded else outcome.output.strip()[-500:]
            )
            print(f"    {step}: {says}".replace("\n", "\n      "), flush=True)
    return unexpected


def _is_chosen(name: str, task: str, only: list[str]) -> bool:
    return not only or name in only or f"{name}/{task}" in only


def _options():
    parser = argparse.ArgumentParser(prog="python -m judges.tasks", description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", help="a folder with the repositories")
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[],
        help="names of sets, or SET/TASK, with commas",
    )
    parser.add_argument("--jobs", type=int, default=4, help="how many tasks run at a time, in one cluster")
    parser.add_argument("flags", nargs="*", help="further flags of `mockube up`, after --")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
