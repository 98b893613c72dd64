"""`make explorer`: remove one line of a controller of mockube at a time, and check that the explorer finds the mistake.

    python -m judges.explorer --only cronjob --budget 120

Each controller runs as an operator in forks of a cluster whose manager runs the others; first as it is, which must show nothing. The
exit code is 1 if a mistake is not found, or if something is found without one. The reports are in `build/explorer`.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from judges.explorer.mutants import Mutation, read_mutations
from tests.support.processes.process import ROOT

BUILD = ROOT / "build/explorer"
SPARE_SECONDS = 300.0
"""How long the undisturbed runs and the repetitions of a finding may take besides the budget."""
WIDTH = 54


def main() -> int:
    options = _options()
    mutations = {name: each for name, each in read_mutations().items() if options.only in name}
    if not mutations:
        raise SystemExit(f"mutations.yaml has no name with {options.only}")
    BUILD.mkdir(parents=True, exist_ok=True)
    print(f"{'the mistake':{WIDTH}} {'result':12} {'plans':>6} {'seconds':>8} {'processor':>10}", flush=True)
    unchanged = [*_unchanged(mutations.values(), options)]
    results = [_mutated(name, each, options) for name, each in mutations.items()]
    found, expected = sum(results), sum(not each.equivalent for each in mutations.values())
    print(f"{found} of {expected} mistakes were found, {len(mutations) - expected} mutations are equivalent")
    return int(not all(unchanged) or found < expected)


def _unchanged(mutations: Any, options: argparse.Namespace) -> Iterator[bool]:
    """Explore the controllers as they are, and yield whether nothing was found."""
    scenarios = dict.fromkeys(each.scenario for each in mutations)
    for scenario in scenarios if options.unchanged else ():
        report = _explore([scenario], f"{scenario} unchanged", options)
        _print_row(f"none: {scenario}", "found" if report["found"] else "nothing", report)
        yield not (report["found"] or report["problem"])


def _mutated(name: str, mutation: Mutation, options: argparse.Namespace) -> bool:
    """Explore a mutated controller, print a row, and return whether its mistake was found, if it is one."""
    report = _explore([mutation.scenario, name], name, options)
    is_found = bool(report["found"])
    result = "found" if is_found else "equivalent" if mutation.equivalent else "not found"
    _print_row(name, result, report)
    return is_found and not mutation.equivalent


def _explore(arguments: list[str], name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run an exploration in a process of its own, and return its report, which is also written to a file."""
    limits = [f"--budget={options.budget}", f"--plans={options.plans}", f"--jobs={options.jobs}"]
    command = [sys.executable, "-m", "judges.explorer.exploring", *arguments, *limits]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=options.budget + SPARE_SECONDS, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    report = json.loads(done.stdout.splitlines()[-1])
    if report["problem"]:
        print(f"{name}: {report['problem']}", flush=True)
    (BUILD / f"{name.replace(' ', '-')}.json").write_text(json.dumps(report, indent=1))
    return report


def _print_row(name: str, result: str, report: dict[str, Any]) -> None:
    plans, seconds, processor = report["plans"], report["seconds"], report["processor"]
    print(f"{name:{WIDTH}} {result:12} {plans:6} {seconds:8.1f} {processor:10.1f}", flush=True)
    if report["found"]:
        print(f"    {report['found'][:110]}\n    {report['when']}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make explorer ARGS=...")
    parser.add_argument("--only", default="", help="a part of the names of the mistakes")
    parser.add_argument("--budget", type=float, default=120.0, help="the seconds for the plans of each (120)")
    parser.add_argument("--plans", type=int, default=200, help="how many plans of each (200)")
    parser.add_argument("--jobs", type=int, default=0, help="how many runs at a time (three for each core)")
    parser.add_argument(
        "--no-unchanged", dest="unchanged", action="store_false", help="leave out the controllers as they are"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
