"""Record all conversations anew with the real components of another release, and keep the older responses for the older minor.

    python -m judges.recorder.again --older 1.36

The conversations of `api`, `answers`, `rights` and `controllers` are held twice with an empty store each time. What is the same
both times replaces the recording; the responses that changed are kept in the folder of the older minor, and printed, to be
read by a person. A conversation that is not the same twice stays in that folder only. That folder keeps what it has already, so that
the command can be repeated. Without an older minor, as for another patch release, a conversation that is not the same twice keeps its
recording.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from judges.choices import require_some
from judges.recorder.__main__ import has_no_response, run_scenario, write_cases
from judges.recorder.scenario import Scenario
from tests.support.processes.real_kubernetes import require_folder
from tests.support.recorded.recordings import FOLDER, jobs_of

FOLDERS = ("api", "answers", "rights", "controllers")


@dataclass(frozen=True)
class Recording:
    """The cases of a recording after a second one."""

    newest: Sequence[Any]
    older: Sequence[Any]
    """Those whose responses are others, or that the newer recording does not have."""


def merge(before: Sequence[Any], again: Sequence[Any]) -> Recording:
    by_id = {case["id"]: case for case in again}
    return Recording(newest=again, older=[case for case in before if by_id.get(case["id"]) != case])


def with_kept(newest: Sequence[Any], before: Sequence[Any]) -> list[Any]:
    """Return the recordings in their earlier order, with those of before that were not recorded again."""
    by_id = {case["id"]: case for case in newest}
    return [by_id.get(case["id"], case) for case in before]


def added_to(present: Sequence[Any], cases: Sequence[Any]) -> list[Any]:
    """Return the recordings of an older minor with others; a present one is of that minor, and stays."""
    ids = {case["id"] for case in present}
    return [*present, *(case for case in cases if case["id"] not in ids)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--older", default="", help="the minor whose responses are kept in its folder, such as 1.36 (none)"
    )
    parser.add_argument("--only", default="", help="the recordings whose names start so, such as api/delete")
    options = parser.parse_args()
    require_folder()
    paths = sorted(path for folder in FOLDERS for path in (FOLDER / folder).glob("*.jsonl"))
    named = [(str(path.relative_to(FOLDER).with_suffix("")), path) for path in paths]
    chosen = [(name, path) for name, path in named if name.startswith(options.only)]
    require_some(chosen, f"no recording begins with {options.only}")
    for name, path in chosen:
        _record_again(name, path, FOLDER / options.older / f"{name}.jsonl" if options.older else None)


def _record_again(name: str, path: Path, older_path: Path | None) -> None:
    before = _read(path)
    first, second = (run_scenario(_scenario(name, before)) for _ in range(2))
    merged = merge(before, [case for case, again in zip(first, second, strict=True) if case == again])
    write_cases(path, merged.newest if older_path else with_kept(merged.newest, before))
    if merged.older and older_path:
        present = _read(older_path) if older_path.exists() else ()
        write_cases(older_path, added_to(present, merged.older))
    print(f"{name}: {len(merged.newest)} of {len(before)} recorded, {len(merged.older)} others than before")
    for case in merged.older:
        print(f"  {case['id']}")


def _read(path: Path) -> list[Any]:
    cases = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for case in cases:
        for step in case["steps"]:
            if has_no_response(step["request"]):
                step.pop("response", None)
    return cases


def _scenario(name: str, cases: Sequence[Any]) -> Scenario:
    folder = name.partition("/")[0]
    requests = [case | {"steps": [{"request": step["request"]} for step in case["steps"]]} for case in cases]
    return Scenario(
        records=name,
        cases=requests,
        with_controllers=folder in ("rights", "controllers"),
        with_scheduler=False,
        jobs=jobs_of(name),
    )


if __name__ == "__main__":
    main()
