"""`make mutations`: remove each stage, filter and admission plugin in turn, and show that a unit test fails.

    python -m tests.mutations --only "update without" --every-test

Ends with 1 if a mutant survives. `--every-test` runs all unit tests of the server's writes and requests on a mutant, not only
those that are marked with it.
"""

import argparse
import sys

import pytest

from .mutants import EQUIVALENT, MUTANTS
from .run import MutationRun

FOLDERS = ("registry", "admission", "request")
"""Below tests/unit/apiserver, the folders of the tests that are run."""


def main() -> int:
    options = _options()
    mutants = [
        mutant
        for mutant in MUTANTS
        if mutant.name not in EQUIVALENT
        and options.only in mutant.name
        and (mutant.is_dangerous or not options.dangerous)
    ]
    run = MutationRun(mutants, (mutant.name for mutant in MUTANTS), every_test=options.every_test)
    plain = ["-qq", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist"]
    plain += [
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]  # the mutants have imported the server already
    folders = [f"tests/unit/apiserver/{folder}" for folder in FOLDERS]
    code = pytest.main([*plain, *folders], plugins=[run])
    for outcome in run.outcomes:
        if not outcome.has_ended:
            print(f"does not end: {outcome.mutant}\n    {outcome.test.partition('::')[2]}")
        elif not outcome.is_killed:
            print(f"survives: {outcome.mutant}")
        elif options.verbose:
            print(f"killed:   {outcome.mutant}\n    {outcome.test.partition('::')[2]}: {outcome.problem}")
    for problem in run.problems:
        print(problem)
    killed = sum(outcome.is_killed for outcome in run.outcomes)
    print(f"{killed} of {len(mutants)} mutants were killed")
    return int(bool(run.problems) or killed < len(mutants) or code not in (0, 5))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the mutants whose names contain it")
    parser.add_argument("--dangerous", action="store_true", help="run those of `make check`")
    parser.add_argument("--every-test", action="store_true", help="run all tests, not only the marked ones")
    parser.add_argument("--verbose", action="store_true", help="print which test killed each mutant, and how")
    return parser.parse_args()


sys.exit(main())
