"""A finding: what is wrong, the smallest plan that shows it, and what happened. It is a file that can be replayed."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct, field

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.component_base.printable import printable
from mockube.failure import UsageError
from mockube.report.recording import RecordedRun

from .judgements import OperatorProblem
from .plans import AT_EVENTS, AT_WRITES, TEXTS, UNDISTURBED_TEXTS, Disturbance, Plan, plan_of
from .trace import Event, Trace
from .unseen import UNSEEN

TYPE: Final = "Finding of mockube explore"
MAX_LINES: Final = 10
MAX_LINE: Final = 160
_BEFORE: Final = 3
"""The events before the first disturbance that are shown."""
_AT_END: Final = 2
_DISTURBANCE: Final = "disturbance"
"""The beginning of the line of one."""


class OperatorFinding(Struct, frozen=True, kw_only=True):
    plan: Plan
    problems: Sequence[OperatorProblem]
    history: Sequence[str]
    """What happened, in at most ten lines."""
    seconds: float = 0.0
    """How long after the undisturbed runs it was seen first."""
    repeated_seconds: float = 0.0
    """How long after them its repetitions had ended. It may be confirmed later, after the time in which an operator may repair it."""
    confirmed: int = 0
    """In how many of the repetitions it showed again."""
    repetitions: int = 0
    log: str = ""
    """What the operator has printed in the disturbed run."""
    others: int = 0
    """The number of other plans that have shown the same."""
    runs: Mapping[str, RecordedRun] = field(default_factory=dict)
    """What reports of the undisturbed and of the disturbed run contain, by their names, if reports are written."""

    @property
    def key(self) -> frozenset[tuple[str, ...]]:
        return frozenset(problem.key for problem in self.problems)


def what_happened(trace: Trace, problems: Sequence[OperatorProblem]) -> Sequence[str]:
    """Return at most ten lines: the disturbances, the writes that show what is wrong, and what was before and after them."""
    events = _with_decisive(trace.events(), problems)
    chosen: list[int] = []
    for number in _by_weight(events, problems):
        if number not in chosen and _line_count([*chosen, number]) <= MAX_LINES:
            chosen.append(number)
    return [*_history(events, sorted(chosen))]


def _with_decisive(events: Sequence[Event], problems: Sequence[OperatorProblem]) -> Sequence[Event]:
    """Return events with the writes that show what is wrong, which may be of objects that controllers have made."""
    known = {id(event) for event in events}
    others = {id(each): each for problem in problems for each in problem.shown_by if id(each) not in known}
    return sorted([*events, *others.values()], key=attrgetter("seconds")) if others else events


def _by_weight(events: Sequence[Event], problems: Sequence[OperatorProblem]) -> Iterator[int]:
    """Yield the numbers of events, those first that a reader needs most."""
    texts = [each.line() for each in events]
    disturbances = [number for number, text in enumerate(texts) if text.startswith(_DISTURBANCE)]
    first = disturbances[0] if disturbances else len(events)
    yield from disturbances
    numbers = {id(event): number for number, event in enumerate(events)}
    decisive = [
        [numbers[id(each)] for each in problem.shown_by if id(each) in numbers] for problem in problems
    ]
    yield from (each[-1] for each in decisive if each)
    yield from (each[0] for each in decisive if each)
    for number in [number for number, text in enumerate(texts) if text.startswith(UNSEEN)][:1]:
        yield from (number, number - 1)  # the write is before it
    yield from range(max(len(events) - _AT_END, 0), len(events))
    yield from reversed(range(max(first - _BEFORE, 0), first))
    yield from range(first, len(events))


def _line_count(numbers: Sequence[int]) -> int:
    """Return how many lines show some events, with one for each gap between them."""
    ordered = sorted(numbers)
    return len(ordered) + sum(after - before > 1 for before, after in pairwise(ordered))


def _history(events: Sequence[Event], numbers: Sequence[int]) -> Iterator[str]:
    for before, number in zip([None, *numbers], numbers, strict=False):
        if before is not None and number - before > 1:
            yield f"{events[before].seconds:6.2f} s  ..."
        yield f"{events[number].seconds:6.2f} s  {events[number].line()[:MAX_LINE]}"


def report(finding: OperatorFinding, number: int, files: Sequence[tuple[str, Path]] = ()) -> Iterator[str]:
    """Yield the lines that are printed about a finding; `files` are those that were written, with what they are for."""
    first, *others = finding.problems
    yield printable(f"finding {number}: {first.text}")
    for problem in others:
        yield printable(f"  and {problem.text}")
    for part in finding.plan.parts:
        yield printable(f"  when {part}")
    yield from (printable(f"    {line}") for line in finding.history)
    also = (
        f", {finding.others} other plan{'s' if finding.others > 1 else ''} showed it, too"
        if finding.others
        else ""
    )
    yield f"  seen again in {finding.confirmed} of {finding.repetitions} repetitions{also}"
    yield from (f"  {purpose} {path}" for purpose, path in files)


class ExplorationCall(Struct, frozen=True, kw_only=True):
    """How an exploration was called, so that a finding can be replayed."""

    scenario: Path
    command: Sequence[str] = ()
    """The operator, if it is a command."""
    function: str = ""
    """The operator as `MODULE:NAME`, if it is a function."""
    seed: int = 0


def write_finding(path: Path, finding: OperatorFinding, call: ExplorationCall) -> None:
    """Write a finding to a file; its paths are relative to it, so that it can be kept in a repository."""
    folder = path.parent.absolute()
    operator = {"function": call.function} if call.function else {"command": [*call.command]}
    tree = {
        "type": TYPE,
        "scenario": os.path.relpath(call.scenario.absolute(), folder),
        **operator,
        "folder": os.path.relpath(Path.cwd(), folder),
        "seed": call.seed,
        "problems": [problem.text for problem in finding.problems],
        **({} if finding.plan.disturbances else {"ending": finding.plan.ending}),
        "plan": finding.plan.trees(),
        "seconds": round(finding.seconds, 3),
        "repeatedSeconds": round(finding.repeated_seconds, 3),
        "history": [*finding.history],
    }
    path.write_text(yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=160))


class Replay(Struct, frozen=True, kw_only=True):
    """What the file of a finding has."""

    scenario: Path
    command: Sequence[str]
    """Empty if the operator is a function."""
    folder: Path
    """Where the command runs."""
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
            scenario=path.parent / msgspec.convert(tree.get("scenario"), str),
            command=msgspec.convert(tree.get("command", []), list[str]),
            folder=path.parent / msgspec.convert(tree.get("folder", str(Path.cwd())), str),
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
    for each in disturbances:
        if each.action in AT_WRITES and each.write is None:
            raise UsageError(f'{path}: the action "{each.action}" needs a write')
        if each.action in AT_EVENTS and each.event is None:
            raise UsageError(f'{path}: the action "{each.action}" needs an event')
    return replay


def _ending(tree: Mapping[str, Any]) -> str:
    return msgspec.convert(tree.get("ending", ""), str)
