"""`make shell-differential`: run random scripts in real shells and in the simulated shell, and print those with different results.

    python -m tests.differential.shell --scripts 10000 --seed 7 --jobs 2

A script counts if dash and busybox ash have the same output, files and exit code; one for bash is compared with bash alone. Needs dash,
busybox and bash. Exits with 1 if fewer than `--minimum` per cent of the scripts are the same.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import orjson

from tests.differential.shell.programs import ProgramScripts
from tests.differential.shell.scripts import Scripts
from tests.differential.shell.shells import RealShells, run_simulated

ROOT_LISTING = "/bin /boot"
KINDS = ("posix", "bash", "programs")


def script_of(kind, seed):
    if kind == "programs":
        return ProgramScripts(seed).script()
    return Scripts(seed, is_bash=kind == "bash").script()


def compare(folder, kind, seed):
    """Return the script, the results of the shells and ours; None if the real shells disagree."""
    global _SHELLS  # noqa: PLW0603 - one for each process
    if _SHELLS is None:
        _SHELLS = RealShells(tempfile.mkdtemp(dir=folder))
    script = script_of(kind, seed)
    names = {"posix": ("dash", "ash"), "bash": ("bash",), "programs": ("ash",)}[kind]
    results = [_SHELLS.run(name, script) for name in names]
    if None in results or len({result.comparable() for result in results}) > 1:
        return script, None, None
    if any(ROOT_LISTING in text for text in (results[0].output, *dict(results[0].files).values())):
        return script, None, None  # it lists the files of this machine
    return script, results[0], run_simulated(script, "bash" if kind == "bash" else "sh")


_SHELLS = None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scripts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=KINDS, default="posix")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--show", type=int, default=10, help="the number of different scripts that are printed"
    )
    parser.add_argument("--minimum", type=float, default=100.0)
    parser.add_argument("--record", help="append the scripts with their results to a file")
    arguments = parser.parse_args()
    seeds = range(arguments.seed * 1_000_000, arguments.seed * 1_000_000 + arguments.scripts)
    same = different = skipped = 0
    records = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(arguments.jobs) as pool:
        for script, expected, actual in pool.map(
            partial(compare, folder, arguments.kind), seeds, chunksize=20
        ):
            if expected is None:
                skipped += 1
                continue
            if expected.comparable() == actual.comparable():
                same += 1
                records.append(
                    {
                        "kind": arguments.kind,
                        "script": script,
                        "code": expected.code,
                        "output": expected.output,
                        "files": dict(expected.files),
                    }
                )
                continue
            different += 1
            if different <= arguments.show:
                show(script, expected, actual)
    print(f"{same} of {same + different} scripts are the same; the shells disagree about {skipped} others")
    if arguments.record:
        with Path(arguments.record).open("ab") as file:
            file.writelines(orjson.dumps(record) + b"\n" for record in records)
    if 100 * same < arguments.minimum * (same + different):
        sys.exit(1)


def show(script, expected, actual):
    print("=" * 80)
    print(script)
    for name, result in (("shell", expected), ("ours", actual)):
        print(f"--- {name}: {result.code}\n{result.output[:1500]}", end="")
        print(f"[errors] {result.errors[:600]}")
    if expected.files != actual.files:
        print("--- files", sorted(set(expected.files) ^ set(actual.files)))


if __name__ == "__main__":
    main()
