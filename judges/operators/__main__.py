"""`make operators`: explore operators with published bugs and well-made ones: the bugs are found, and no finding is a false alarm.

    python -m judges.operators --only rabbitmq --budget 60

Operators are built from their Go modules, in `build/operators`, which takes minutes and needs Go. Those whose version is in no module
are taken from a folder: DIR/NAME has the sources and the built `program`, or is built once as the list says. The exit code is 1 if a bug is not found, or if a finding
about a well-made operator is not explained.
"""

import argparse
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from judges.operators.bugs import HERE, Bug, Operator, read_operators, texts_of_plan
from judges.operators.exploring import Exploration, explore
from judges.operators.programs import prepare
from judges.operators.well_made import WellMadeOperator, judge, read_well_made
from judges.suites.sources import SourceMissing
from mockube.cli.interruption import interrupted_by_sigterm
from tests.support.processes.process import ROOT

BUILD = ROOT / "build/operators"


def main() -> int:
    options = _options()
    operators, well_made = read_operators(), read_well_made()
    unknown = sorted(set(options.only) - operators.keys() - well_made.keys())
    if unknown:
        raise SystemExit(f"operators.yaml and well_made.yaml have no {', '.join(unknown)}")
    chosen = [each for each in operators.values() if not options.only or each.name in options.only]
    results = find_bugs(chosen, options) if chosen else []
    careful = [each for each in well_made.values() if not options.only or each.name in options.only]
    return int(not all([*results, *(find_false_alarms(careful, options) if careful else [])]))


def find_bugs(operators: Sequence[Operator], options) -> Sequence[bool]:
    """Explore operators with published bugs, print which are found, and return whether each is."""
    print(
        f"{'published bug':42} {'pattern':20} {'seen':>8} {'repeated':>9} {'confirmed':>10} {'processor':>10}",
        flush=True,
    )
    results = [found for operator in operators for found in run(operator, options)]
    print(f"{sum(results)} of {len(results)} published bugs were found")
    return results


def find_false_alarms(operators: Sequence[WellMadeOperator], options) -> Sequence[bool]:
    """Explore well-made operators, print what is found, and return for each whether all of it is explained."""
    print(f"{'well-made operator':24} {'version':14} findings", flush=True)
    results = [judge(operator, _given(options), BUILD, options) for operator in operators]
    print(f"{sum(results)} of {len(results)} well-made operators have no finding that is not explained")
    return results


def _given(options) -> Path | None:
    return Path(options.operators).absolute() if options.operators else None


def run(operator: Operator, options) -> Iterator[bool]:
    """Explore an operator with its scenarios, print a row for each bug, and yield whether it was found."""
    for issue, reason in operator.out_of_reach.items():
        print(f"{issue:42} not looked for: {reason}", flush=True)
    if not operator.bugs:
        return
    given = _given(options)
    try:
        folder = prepare(operator, given, BUILD / operator.name)
    except SourceMissing as error:
        for bug in operator.bugs:
            print(f"{bug.issue:42} {bug.pattern:20} {'-':>8} {'-':>9} {'-':>10} {'-':>10}", flush=True)
            yield False
        print(f"    {error}", flush=True)
        return
    for scenario, bugs in operator.scenarios():
        if options.scenario in scenario:
            for name in (scenario, *operator.files):
                shutil.copy(HERE / "scenarios" / name, folder / name)
            exploration = explore(operator, scenario, bugs, folder, options.budget, options.explore)
            yield from (_print_row(bug, exploration) for bug in bugs)
            if exploration.end:
                print(f"    {folder / Path(scenario).stem}.log ends with: {exploration.end}", flush=True)


def _print_row(bug: Bug, exploration: Exploration) -> bool:
    found = next((each for each in exploration.found if each.bug == bug), None)
    if found is None:
        print(f"{bug.issue:42} {bug.pattern:20} {'-':>8} {'-':>9} {'-':>10} {'-':>10}  not found", flush=True)
        return False
    print(
        f"{bug.issue:42} {bug.pattern:20} {found.tree['seconds']:8.0f} {found.tree['repeatedSeconds']:9.0f}"
        f" {found.seconds:10.0f} {found.processor_seconds:10.0f}",
        flush=True,
    )
    for text in (*found.tree["problems"][:1], *(f"when {text}" for text in texts_of_plan(found.tree))):
        print(f"    {text}", flush=True)
    print(f"    {found.path}", flush=True)
    return True


def _options():
    parser = argparse.ArgumentParser(
        prog="python -m judges.operators", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--operators", help="a folder of sources and programs, by the names of the operators")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help="names of operators, with commas"
    )
    parser.add_argument("--scenario", default="", help="a part of the names of the scenarios that are run")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for the plans of a scenario (60)")
    parser.add_argument(
        "--explore", type=shlex.split, default=[], help="more flags of mockube explore, such as '--jobs=2'"
    )
    return parser.parse_args()


if __name__ == "__main__":
    with interrupted_by_sigterm():  # the exploration that runs ends, too
        sys.exit(main())
