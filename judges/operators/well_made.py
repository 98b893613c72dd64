"""Well-made operators: each finding about one is either true, and listed with the reason, or a false alarm.

An operator has no bug that is published. What `mockube explore` finds of it must be explained by an entry of `well_made.yaml`, which says
what its code does and what a user sees. A finding that no entry explains fails the judge.
"""

import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from judges.operators.bugs import HERE, texts_of_plan
from judges.operators.programs import OperatorProgram, prepare
from judges.suites.sources import SourceMissing

FILES = HERE / "well_made"
SECONDS_AFTER_BUDGET = 900
"""How long the confirmation of findings may take after the last plan has begun."""


class TrueFinding(Struct, frozen=True, kw_only=True):
    """What is true about an operator: a pattern of the problem, one of what the plan does, and why it is so."""

    finding: str
    why: str
    when: str = ""

    def explains(self, problem: str, plan: Sequence[str]) -> bool:
        is_of_plan = not self.when or any(re.search(self.when, text) for text in plan)
        return is_of_plan and re.search(self.finding, problem) is not None


class WellMadeOperator(OperatorProgram, frozen=True, kw_only=True):
    command: Sequence[str]  # required here
    scenario: str
    requirements: Sequence[str] = ()
    findings: Sequence[TrueFinding] = ()

    def unexplained(self, found: Mapping[str, Any]) -> Sequence[str]:
        """Return the problems of a finding's file that no entry explains."""
        plan = texts_of_plan(found)
        return [
            problem
            for problem in found["problems"]
            if not any(each.explains(problem, plan) for each in self.findings)
        ]


def read_well_made(path: Path = HERE / "well_made.yaml") -> dict[str, WellMadeOperator]:
    settings = yaml.safe_load(path.read_text())
    return {
        name: msgspec.convert({"name": name, **fields}, WellMadeOperator) for name, fields in settings.items()
    }


def judge(operator: WellMadeOperator, given: Path | None, build: Path, options: Any) -> bool:
    """Explore an operator, print a row with its findings, and return whether all of them are explained."""
    try:
        folder = _prepared(operator, given, build / operator.name)
    except SourceMissing as error:
        print(f"{operator.name:24} {operator.version[:12]:14} -\n    {error}", flush=True)
        return False
    for name in (operator.scenario, *operator.files):
        shutil.copy(FILES / name, folder / name)
    log = _explore(operator, folder, options.budget, options.explore)
    found = [
        yaml.safe_load(path.read_text()) for path in sorted((folder / "findings").glob("finding-*.yaml"))
    ]
    unexplained = [(tree, problem) for tree in found for problem in operator.unexplained(tree)]
    last = next((line for line in reversed(log) if " plans, in " in line), log[-1] if log else "")
    print(f"{operator.name:24} {operator.version[:12]:14} {last}", flush=True)
    for tree, problem in unexplained:
        print(f"    not explained: {problem}", flush=True)
        for text in texts_of_plan(tree):
            print(f"      when {text}", flush=True)
    return not unexplained and " plans, in " in last


def _prepared(operator: WellMadeOperator, given: Path | None, target: Path) -> Path:
    """Return a folder with the operator's program: of Go, or a virtual environment of Python."""
    if not operator.requirements:
        return prepare(operator, given, target)
    environment = target / "venv"
    if not (environment / "installed").exists():
        venv.create(environment, with_pip=True, clear=True)
        finished = subprocess.run(
            [environment / "bin/python", "-m", "pip", "install", "--quiet", *operator.requirements],
            capture_output=True,
            text=True,
            check=False,
        )
        if finished.returncode:
            raise SourceMissing(f"pip install: {finished.stderr.strip()}")
        (environment / "installed").touch()
    return target


def _explore(operator: WellMadeOperator, folder: Path, budget: float, flags: Sequence[str]) -> Sequence[str]:
    """Run `mockube explore` to its end, and return the lines that it prints."""
    shutil.rmtree(folder / "findings", ignore_errors=True)
    command = [
        sys.executable, "-m", "mockube", "explore", f"--budget={budget:g}s",
        *operator.explore, *flags, operator.scenario, "--", *operator.command,
    ]  # fmt: skip
    finished = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=budget + SECONDS_AFTER_BUDGET,
        check=False,
    )
    (folder / "explore.log").write_text(finished.stdout)
    return [*_lines(finished.stdout)]


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())
