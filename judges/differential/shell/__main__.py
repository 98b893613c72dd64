"""`make shell-differential`: run random scripts in real shells and in the simulated shell, and print those with different results.

    python -m judges.differential.shell --scripts 10000 --seed 7 --jobs 2

A script counts if dash and busybox ash have the same output, files and exit code; one for bash is compared with bash alone. The kinds
`layouts` and `bash-layouts` are valid scripts with blanks, comments, newlines, line continuations and here-documents at their places: the
seeds from 0 on (`--seed 0 --scripts 24000`) are one of these at each place of each script of `layouts.py`, the others several at random
places; `layouts` counts if bash agrees, too, and `bash-layouts` if the script is valid for bash. Scripts of the kinds `failures` and `bash-failures` are those of `failures.py`: the messages of the shell are compared too, with those of dash, or of
bash; `--messages` does so for random scripts of bash. Needs dash, busybox and bash. Exits with 1 if fewer than `--minimum` per cent of the
scripts are the same.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import orjson

from judges.differential.shell.failures import FAILURES
from judges.differential.shell.layouts import Layouts, single_layouts
from judges.differential.shell.programs import ProgramScripts
from judges.differential.shell.scripts import Scripts
from judges.differential.shell.shells import RealShells, run_simulated

ROOT_LISTING = "/bin /boot"
NO_SCRIPT = ": -c: line "
"""What bash writes before an error of its parser."""
SHELLS = {
    "posix": ("dash", "ash"),
    "bash": ("bash",),
    "programs": ("ash",),
    "failures": ("dash",),
    "bash-failures": ("bash",),
    "layouts": ("dash", "ash", "bash"),
    "bash-layouts": ("bash",),
}


def script_of(kind, seed):
    if "failures" in kind:
        return FAILURES[seed % len(FAILURES)]
    if kind == "programs":
        return ProgramScripts(seed).script()
    if "layouts" in kind:
        is_bash = kind == "bash-layouts"
        variants = single_layouts(is_bash=is_bash)
        return variants[seed] if seed < len(variants) else Layouts(seed, is_bash=is_bash).script()
    return Scripts(seed, is_bash=kind == "bash").script()


def compare(folder, kind, seed, *, messages=False):
    """Return the script, the results of the shells and ours; None if the real shells disagree."""
    global _SHELLS  # noqa: PLW0603 - one for each process
    if _SHELLS is None:
        _SHELLS = RealShells(tempfile.mkdtemp(dir=folder))
    script = script_of(kind, seed)
    results = [_SHELLS.run(name, script) for name in SHELLS[kind]]
    if None in results:
        return script, None, None
    compares_messages = "failures" in kind or (messages and kind == "bash")
    if not compares_messages:
        results = [replace(result, messages=()) for result in results]
    if len({result.comparable() for result in results}) > 1:
        return script, None, None
    if kind == "bash-layouts" and NO_SCRIPT in results[0].errors:
        return script, None, None  # bash alone often continues with another code
    if any(ROOT_LISTING in text for text in (results[0].output, *dict(results[0].files).values())):
        return script, None, None  # it lists the files of this machine
    ours = run_simulated(script, "bash" if "bash" in kind else "sh")
    if not compares_messages:
        ours = replace(ours, messages=())
    return script, results[0], ours


_SHELLS = None


def record_of(kind, script, result, trace):
    record = {"kind": kind, "script": script, "code": result.code, "output": result.output, "trace": trace}
    if "failures" in kind:
        return {**record, "messages": result.messages}
    if "layouts" in kind:
        return record
    return {**record, "files": dict(result.files)}


RETRACE = "only write into files of records what the simulated shell does now on the way to the same results"


def retrace(file):
    records = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    with file.open("wb") as written:
        for record in records:
            trace = run_simulated(record["script"], "bash" if "bash" in record["kind"] else "sh").trace
            written.write(orjson.dumps({**record, "trace": trace}) + b"\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scripts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=SHELLS, default="posix")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--show", type=int, default=10, help="the number of different scripts that are printed"
    )
    parser.add_argument("--messages", action="store_true", help="compare the messages of the shell, too")
    parser.add_argument("--minimum", type=float, default=100.0)
    parser.add_argument("--record", help="append the scripts with their results to a file")
    parser.add_argument("--retrace", nargs="+", default=(), type=Path, metavar="FILE", help=RETRACE)
    arguments = parser.parse_args()
    for file in arguments.retrace:
        retrace(file)
    if arguments.retrace:
        return
    seeds = range(arguments.seed * 1_000_000, arguments.seed * 1_000_000 + arguments.scripts)
    if "failures" in arguments.kind:
        seeds = range(len(FAILURES))
    same = different = skipped = 0
    records = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(arguments.jobs) as pool:
        for script, expected, actual in pool.map(
            partial(compare, folder, arguments.kind, messages=arguments.messages), seeds, chunksize=20
        ):
            if expected is None:
                skipped += 1
                continue
            if expected.comparable() == actual.comparable():
                same += 1
                records.append(record_of(arguments.kind, script, expected, actual.trace))
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
