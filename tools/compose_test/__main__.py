"""`make compose-test`: start the whole compose project on a Docker engine, and run its tests.

A running engine is used, with images from registries if these can be reached. Without an engine, root on Debian starts
one in its own namespaces, from Debian's packages and with images made of them; the machine's network is not changed. The
last line reports whether the tests ran. `--fetch` only fetches the packages.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.compose_test import engine, images
from tools.compose_test.commands import SetupFailed, report
from tools.compose_test.stock import Stock

ROOT = Path(__file__).parents[2]
TESTS = "tests/deploy/test_compose.py"
INSIDE = "--inside"
FETCH = "--fetch"
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


def main(folder: Path, option: str = "") -> int:
    stock = Stock(folder)
    try:
        if option == FETCH:
            return _fetch(stock)
        return _inside(stock) if option == INSIDE else _outside(stock, folder)
    except SetupFailed as reason:
        print(f"compose: could not run: {reason}")
        return 0


def _fetch(stock: Stock) -> int:
    if not engine.is_running(os.environ):
        engine.check_possible()
        stock.fetch()
    return 0


def _outside(stock: Stock, folder: Path) -> int:
    """Use the running engine; if there is none, run this program again in its own namespaces."""
    if engine.is_running(os.environ):
        return _test(dict(os.environ) | images.pull_or_build(stock), engine.compose(stock, os.environ))
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
    sys.exit(main(Path(sys.argv[1]).absolute(), *sys.argv[2:]))
