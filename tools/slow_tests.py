"""Print the most expensive tests of the last runs, by processor time, and what each folder costs.

python -m tools.slow_tests CACHE --count 100
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import orjson

DEPTH: Final = 2
"""The parts of a path that name a folder, as tests/unit."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cache", type=Path, help="the folder of pytest's cache")
    parser.add_argument("--count", type=int, default=100)
    arguments = parser.parse_args(argv)
    file = arguments.cache / "d/workers/costs.json"
    if not file.exists():
        print(f"{file} is missing: run `make test` first", file=sys.stderr)
        return 1
    costs: Mapping[str, float] = orjson.loads(file.read_bytes())
    folders: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for test, seconds in costs.items():
        module = test.partition("::")[0]
        folders["/".join(module.split("/")[:DEPTH])] += seconds
        modules[module] += seconds
    _print("folders", folders.most_common())
    _print("modules", modules.most_common(arguments.count))
    _print("tests", Counter(costs).most_common(arguments.count))
    return 0


def _print(title: str, rows: Sequence[tuple[str, float]]) -> None:
    print(f"\n{title}, seconds of processor time:")
    for name, seconds in rows:
        print(f"{seconds:8.2f}  {name}")


if __name__ == "__main__":
    sys.exit(main())
