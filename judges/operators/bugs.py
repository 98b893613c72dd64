"""The list of operators with published bugs, and whether a finding of `mockube explore` shows one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from judges.operators.programs import OperatorProgram
from mockube.exploration.plans import Disturbance

HERE = Path(__file__).parent


class Bug(Struct, frozen=True, kw_only=True):
    """A published bug, and what a finding of it looks like."""

    issue: str
    pattern: str
    happens: str
    scenario: str
    when: str
    finding: str

    def is_shown_by(self, found: Mapping[str, Any]) -> bool:
        """Return whether a finding's file has this bug: what its plan does, and what is wrong."""
        if self.when and not any(re.search(self.when, text) for text in texts_of_plan(found)):
            return False
        return any(re.search(self.finding, text) for text in found["problems"])


class Operator(OperatorProgram, frozen=True, kw_only=True):
    """An operator with published bugs."""

    bugs: Sequence[Bug] = ()
    out_of_reach: Mapping[str, str] = {}

    def scenarios(self) -> Iterator[tuple[str, Sequence[Bug]]]:
        """Yield each scenario with the bugs that it shows."""
        for scenario in dict.fromkeys(bug.scenario for bug in self.bugs):
            yield scenario, [bug for bug in self.bugs if bug.scenario == scenario]


def read_operators(path: Path = HERE / "operators.yaml") -> dict[str, Operator]:
    settings = yaml.safe_load(path.read_text())
    return {name: _operator(name, fields) for name, fields in settings.items()}


def _operator(name: str, fields: Mapping[str, Any]) -> Operator:
    bugs = [Bug(issue=issue, **about) for issue, about in fields.get("bugs", {}).items()]
    return Operator(name=name, **{**fields, "bugs": bugs})


def texts_of_plan(found: Mapping[str, Any]) -> Sequence[str]:
    """Return what the plan of a finding's file does, as `mockube explore` prints it."""
    return [str(each) for each in msgspec.convert(found["plan"], list[Disturbance])]
