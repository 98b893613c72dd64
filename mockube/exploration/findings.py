"""A finding: what is wrong, the smallest plan that shows it, and what happened. It is a file that can be replayed."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.component_base.printable import printable
from mockube.failure import UsageError

from .judgements import OperatorProblem
from .plans import AT_WRITES, TEXTS, UNDISTURBED_TEXTS, Disturbance, Plan, plan_of
from .trace import Trace

TYPE: Final = "Finding of mockube explore"
MAX_LINES: Final = 10
MAX_LINE: Final = 160
_BEFORE: Final = 3
"""The lines before the first disturbance that are shown."""


class OperatorFinding(Struct, frozen=True, kw_only=True):
    plan: Plan
    problems: Sequence[OperatorProblem]
    history: Sequence[str]
    """What happened, in at most ten lines."""
    confirmed: int = 0
    """In how many of the repetitions it showed again."""
    repetitions: int = 0
    others: int = 0
    """The number of other plans that have shown the same."""

    @property
    def key(self) -> frozenset[tuple[str, ...]]:
        return frozenset(problem.key for problem in self.problems)


def what_happened(trace: Trace) -> Sequence[str]:
    """Return the lines about the first disturbance, what followed, and how it ended."""
    lines = trace.lines()
    first = next(
        (index for index, (_, text) in enumerate(lines) if text.startswith("disturbance")), len(lines)
    )
    chosen = lines[max(first - _BEFORE, 0) :]
    if len(chosen) > MAX_LINES:
        chosen = [*chosen[: MAX_LINES - 3], *chosen[-2:]]
        chosen.insert(MAX_LINES - 3, (chosen[MAX_LINES - 4][0], "..."))
    return [f"{seconds:6.2f} s  {text[:MAX_LINE]}" for seconds, text in chosen]


def report(finding: OperatorFinding, number: int, path: Path | None = None) -> Iterator[str]:
    """Yield the lines that are printed about a finding."""
    first, *others = finding.problems
    yield printable(f"finding {number}: {first.text}")
    for problem in others:
        yield printable(f"  and {problem.text}")
    for part in map(str, finding.plan.disturbances or (finding.plan,)):
        yield printable(f"  when {part}")
    yield from (printable(f"    {line}") for line in finding.history)
    also = (
        f", {finding.others} other plan{'s' if finding.others > 1 else ''} showed it, too"
        if finding.others
        else ""
    )
    yield f"  seen again in {finding.confirmed} of {finding.repetitions} repetitions{also}"
    if path is not None:
        yield f"  replay it: mockube explore --replay {path}"


def write_finding(
    path: Path, finding: OperatorFinding, *, scenario: str, command: Sequence[str], seed: int
) -> None:
    tree = {
        "type": TYPE,
        "scenario": scenario,
        "command": [*command],
        "seed": seed,
        "problems": [problem.text for problem in finding.problems],
        **({} if finding.plan.disturbances else {"ending": finding.plan.ending}),
        "plan": [
            {name: value for name, value in msgspec.to_builtins(each).items() if value not in ("", None)}
            for each in finding.plan.disturbances
        ],
        "history": [*finding.history],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=160))


def remove_findings(folder: Path) -> None:
    """Remove the files of the findings of an earlier exploration."""
    for path in folder.glob("finding-*.yaml"):
        if path.is_file() and path.read_bytes().startswith(f"type: {TYPE}".encode()):
            path.unlink()


class Replay(Struct, frozen=True, kw_only=True):
    """What the file of a finding has."""

    scenario: str
    command: Sequence[str]
    seed: int
    plan: Plan


def read_finding(path: Path) -> Replay:
    """Return what a finding's file has; raise UsageError for another file."""
    try:
        tree = load(path.read_bytes()).tree
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except YamlError as error:
        raise UsageError(f"{path}: {error}") from error
    if not isinstance(tree, Mapping) or tree.get("type") != TYPE:
        raise UsageError(f"{path}: it is no finding of `mockube explore`")
    try:
        disturbances = msgspec.convert(tree.get("plan"), list[Disturbance])
        replay = Replay(
            scenario=_text(tree, "scenario"),
            command=msgspec.convert(tree.get("command"), list[str]),
            seed=msgspec.convert(tree.get("seed", 0), int),
            plan=plan_of(disturbances) if disturbances else Plan(ending=_ending(tree)),
        )
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from error
    if replay.plan.ending not in UNDISTURBED_TEXTS:
        raise UsageError(f'{path}: unknown ending "{replay.plan.ending}"')
    unknown = [each.action for each in disturbances if each.action not in TEXTS]
    if unknown:
        raise UsageError(f'{path}: unknown action "{unknown[0]}"')
    incomplete = [each.action for each in disturbances if each.action in AT_WRITES and each.write is None]
    if incomplete:
        raise UsageError(f'{path}: the action "{incomplete[0]}" needs a write')
    return replay


def _ending(tree: Mapping[str, Any]) -> str:
    return msgspec.convert(tree.get("ending", ""), str)


def _text(tree: Mapping[str, Any], name: str) -> str:
    return msgspec.convert(tree.get(name), str)
