"""`make mutations`: remove one rule at a time, and show that a unit test fails.

    python -m tests.mutations --package server --only "update without" --every-test
    python -m tests.mutations --package scheduler --seed 3 --count 60

Of the server, every stage, filter and admission plugin is left out in turn: it ends with 1 if one of these mutants survives. Of
another package, a seed chooses conditions, operands, calls and entries of tables: it ends with 1 if fewer
are killed than `PACKAGES` says.
`--every-test` runs all unit tests of the server's writes and requests on a mutant, not only those that are marked with it.
"""

import argparse
import os
import sys

import pytest

from .mutants import EQUIVALENT, MUTANTS
from .package import PACKAGES, SERVER, PackageRules
from .run import MarkedTests, MutationRun, Outcome, Subject

FOLDERS = ("registry", "admission", "request")
"""Below tests/unit/apiserver, the folders of the tests that are run for the server."""
PLAIN = ("-qq", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist")
CHECK = ("--tier", "check")
"""What `make check` runs."""
WITHOUT_WARNING = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""The mutants have imported the server already."""


def main() -> int:
    options = _options()
    codes = []
    for package in options.package or (SERVER, *PACKAGES):
        # Each package has a process of its own, whose memory is small, so that forks are quick.
        child = os.fork()
        if child == 0:
            try:
                os._exit(_run(package, options))
            finally:
                os._exit(1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return int(any(codes))


def _run(package: str, options: argparse.Namespace) -> int:
    subject: Subject
    if package == SERVER:
        mutants = [
            mutant
            for mutant in MUTANTS
            if mutant.name not in EQUIVALENT
            and options.only in mutant.name
            and (mutant.is_dangerous or not options.dangerous)
        ]
        subject = MarkedTests(mutants, (mutant.name for mutant in MUTANTS), every_test=options.every_test)
        arguments = [f"tests/unit/apiserver/{folder}" for folder in FOLDERS]
        needed = 1.0
    else:
        chosen = PACKAGES[package]
        needed = chosen.killed_share
        subject = PackageRules(chosen.folder, options.seed, options.count, options.only)
        arguments = [*CHECK, *chosen.tests]
    outcomes: list[Outcome] = []

    def note(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if not outcome.has_ended:
            what = "does not end" if outcome.is_killed else "cannot be made"
            print(f"{what}: {outcome.mutant}\n    {outcome.test.partition('::')[2]}", flush=True)
        elif not outcome.is_killed:
            print(f"survives: {outcome.mutant}\n    {len(outcome.cpu_seconds)} tests", flush=True)
        elif options.verbose:
            test = outcome.test.partition("::")[2]
            print(f"killed:   {outcome.mutant}\n    {test}: {outcome.problem}", flush=True)

    run = MutationRun(subject, note)
    code = pytest.main([*PLAIN, *WITHOUT_WARNING, *arguments], plugins=[run])
    for problem in run.problems:
        print(problem)
    killed = sum(outcome.is_killed for outcome in outcomes)
    print(f"{package}: {killed} of {len(outcomes)} mutants were killed", flush=True)
    return int(bool(run.problems) or killed < needed * len(outcomes) or code not in (0, 5))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument(
        "--package",
        action="append",
        choices=(SERVER, *PACKAGES),
        help="the package to change, by default all; may be repeated",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="run the mutants whose names contain it")
    parser.add_argument("--seed", type=int, default=1, help="chooses the rules of a package that are removed")
    parser.add_argument("--count", type=int, default=60, help="how many rules of a package are removed")
    parser.add_argument("--dangerous", action="store_true", help="run those of `make check`")
    parser.add_argument("--every-test", action="store_true", help="run all tests, not only the marked ones")
    parser.add_argument("--verbose", action="store_true", help="print which test killed each mutant, and how")
    return parser.parse_args()


sys.exit(main())
