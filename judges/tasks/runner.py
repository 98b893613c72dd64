"""Runs a task: its set-up, what the cluster shows, its check with nothing done and after a solution, and its clean-up."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from judges.scripts import run_script

SETUP_SECONDS = 420
IDLE_SECONDS = 25
"""The time after which a check with nothing done has failed: those that wait would wait for minutes."""
SOLVED_SECONDS = 200
SHOWS_SECONDS = 60
"""The time in which a symptom must show after the set-up."""
STEPS = ("setup", "shows", "idle", "solved")


class Task(NamedTuple):
    name: str
    folder: Path
    shows: Mapping[str, str] = {}
    solution: str = ""
    inject: str = ""
    """What breaks an application that the set-up deploys, of a set whose form is `injections`."""
    nodes: int = 3
    """Tasks with the same number share a cluster."""
    fails: Mapping[str, str] = {}

    @property
    def namespace(self) -> str:
        """The namespace of an application into which a fault is injected."""
        return self.name.replace("_", "-")


class Scripts(NamedTuple):
    """The scripts of a task as commands of a shell; "" if there is none."""

    setup: str
    verify: str = ""
    cleanup: str = ""


class Outcome(NamedTuple):
    succeeded: bool
    output: str = ""


def scripts_of(task: Task, form: str, deploy: str = "") -> Scripts:
    """Return the scripts of a task; `deploy` deploys the application into which a set injects its faults."""
    if form == "injections":
        return Scripts(
            setup=f"set -e\n{deploy}\n{task.inject}", cleanup='kubectl delete namespace "$NAMESPACE"'
        )
    if form == "scripts":
        return Scripts(*(_script(task.folder / f"{name}.sh") for name in ("setup", "verify", "cleanup")))
    case = yaml.safe_load((task.folder / "test_case.yaml").read_text())
    return Scripts(setup=case.get("before_test") or "", cleanup=case.get("after_test") or "")


def _script(path: Path) -> str:
    """Return a command that runs a script by its path, because it may look for files beside itself."""
    return f"bash ./{path.name}" if path.exists() else ""


def run_task(task: Task, form: str, kubeconfig: Path, deploy: str = "") -> dict[str, Outcome]:
    """Return the outcome of each step that the task has."""
    scripts, shell = scripts_of(task, form, deploy), Shell(task.folder, kubeconfig, task.namespace)
    outcomes = {"setup": shell.run(scripts.setup, SETUP_SECONDS)}
    try:
        if task.shows:
            outcomes["shows"] = _shows(shell, task.shows)
        if scripts.verify:
            idle = shell.run(scripts.verify, IDLE_SECONDS)
            outcomes["idle"] = Outcome(
                succeeded=not idle.succeeded, output=f"it succeeds with nothing done: {idle.output}"
            )
        if task.solution:
            solved = shell.run(f"set -e\n{task.solution}", SOLVED_SECONDS)
            outcomes["solved"] = shell.run(scripts.verify, SOLVED_SECONDS) if solved.succeeded else solved
    finally:
        shell.run(scripts.cleanup, SOLVED_SECONDS)
    return outcomes


def _shows(shell: "Shell", shows: Mapping[str, str]) -> Outcome:
    """Return whether all symptoms show, each in some output of its command until the time is over."""
    deadline = time.monotonic() + SHOWS_SECONDS
    for command, pattern in shows.items():
        output = shell.run(f"kubectl {command}", 30).output
        while not re.search(pattern, output, re.MULTILINE):
            if time.monotonic() > deadline:
                return Outcome(
                    succeeded=False, output=f"kubectl {command}: no {pattern!r} in:\n{output[-400:]}"
                )
            output = shell.run(f"sleep 1; kubectl {command}", 30).output
    return Outcome(succeeded=True)


class Shell:
    """A shell in the folder of a task, with the cluster's kubeconfig only."""

    def __init__(self, folder: Path, kubeconfig: Path, namespace: str) -> None:
        self._folder = folder
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            "NAMESPACE": namespace,
        }

    def run(self, script: str, seconds: float) -> Outcome:
        code, output = run_script(script, self._folder, self._environment, seconds)
        return Outcome(succeeded=code == 0, output=output)
