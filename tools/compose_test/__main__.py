"""`make compose-test`: bring the whole compose project up on a Docker engine, and run its tests against it.

Where an engine answers, it is used, and images come from registries if those answer too. Where there is none and this
is root on a Debian, one is started in namespaces of its own, out of Debian's packages and with images made of them; the
machine's own network is left as it is. The last line reports whether it ran.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.compose_test import engine, images
from tools.compose_test.stock import Stock
from tools.compose_test.words import Impossible, report

ROOT = Path(__file__).parents[2]
TESTS = "tests/deploy/test_compose.py"
INSIDE = "--inside"
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def main(folder: Path, *, inside: bool) -> int:
    try:
        return _inside(Stock(folder)) if inside else _outside(Stock(folder), folder)
    except Impossible as reason:
        print(f"compose: could not run: {reason}")
        return 0


def _outside(stock: Stock, folder: Path) -> int:
    """By the engine that answers; else by this program again, in namespaces of its own."""
    if engine.answers(os.environ):
        return _test(dict(os.environ) | images.from_somewhere(stock), engine.compose(stock, os.environ))
    engine.check_possible()
    stock.fetch()
    again = [*NAMESPACES, sys.executable, "-m", "tools.compose_test", folder, INSIDE]
    return subprocess.run(again, cwd=ROOT, check=False).returncode


def _inside(stock: Stock) -> int:
    with engine.own(stock) as environment:
        compose = engine.compose(stock, environment)
        return _test(environment | images.from_stock(stock, environment), compose)


def _test(environment: Mapping[str, str], compose: str) -> int:
    report(f"the tests, by {compose.rsplit('/', maxsplit=1)[-1]}")
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS]
    code = subprocess.run(
        pytest, cwd=ROOT, env={**environment, "MOCKUBE_COMPOSE": compose}, check=False
    ).returncode
    print(f"compose: ran: {'passed' if code == 0 else 'failed'}")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), inside=INSIDE in sys.argv[2:]))
