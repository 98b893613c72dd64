"""Run all tests many times on too few processors, and list those that fail in one run and pass in another.

    python -m tools.flaky_tests --rounds 10 --output build/flaky-tests.txt

One processor is taken away, and each of the others is shared with a process that computes all the time.
"""

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.packages import ROOT

RESULT: Final = re.compile(r"^(?:FAILED|ERROR|flaky:) (tests/\S+)", re.MULTILINE)
BUSY: Final = "while True: pass"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=ROOT / "build/flaky-tests.txt")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, such as a folder of tests")
    arguments = parser.parse_args(argv)
    failures: Counter[str] = Counter()
    with _few_processors():
        for number in range(1, arguments.rounds + 1):
            failed, closing = _run_tests(arguments.pytest)
            failures.update(failed)
            print(f"round {number} of {arguments.rounds}: {closing}", flush=True)
    lines = [f"{count} of {arguments.rounds}: {test}" for test, count in failures.most_common()]
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text("".join(f"{line}\n" for line in lines))
    print(*lines, f"{len(lines)} tests failed at least once", sep="\n")
    return bool(lines)


@contextmanager
def _few_processors() -> Iterator[None]:
    """Take a processor from this process and those that it starts, and let the rest compute something else, too."""
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, processors[1:] or processors)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _run_tests(arguments: Sequence[str]) -> tuple[set[str], str]:
    """Return the tests that failed beside others, and pytest's closing line."""
    command = [sys.executable, "-m", "pytest", "--workers=auto", "-p", "no:cacheprovider", *arguments]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout
    return set(RESULT.findall(printed)), printed.rstrip().rpartition("\n")[2].strip("= ")


if __name__ == "__main__":
    sys.exit(main())
