"""Recorded conversations with a real server: those of the repository, or of the folder in CONFORMANCE_DIR.

Values that the recorder blanked out, because they differ from run to run, are replaced by valid values.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

FOLDER = Path(os.environ.get("CONFORMANCE_DIR", Path(__file__).parents[2] / "conformance/golden")).resolve()

EXPECTED = Path(__file__).parents[2] / "conformance"
COUNTS: dict[str, int] = orjson.loads((EXPECTED / "counts.json").read_bytes())
"""How many recordings each file holds."""
DIFFERENCES: dict[str, dict[str, list[str]]] = orjson.loads((EXPECTED / "differences.json").read_bytes())
"""The recordings that may differ: by file, by the reason, their ids."""

JOBS = {
    "answers/registrations": 6,
    "api/crd": 6,
    "api/watch": 6,
    "controllers": 16,
    "rights": 16,
}
"""How many conversations run at a time, by file or folder: those with controllers or watches mostly wait."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")

_IN_MICROSECONDS = {"eventTime", "renewTime", "acquireTime"}
_FILLED_IN = {"<port>": 30000, "<ips>": ["10.0.0.1"], "<count>": 3}


def cases(pattern: str = "api/*.jsonl") -> list[Any]:
    """Parameters for a test: each recorded case of these files, under its id."""
    found = [
        orjson.loads(line) for path in sorted(FOLDER.glob(pattern)) for line in path.read_bytes().splitlines()
    ]
    return [pytest.param(case, id=case["id"]) for case in found]


def jobs_of(name: str) -> int:
    """Return how many conversations of a file run at a time."""
    return JOBS.get(name, JOBS.get(name.partition("/")[0], 1))


def reasons(name: str) -> dict[str, str]:
    """Return why recordings of a file may differ, by their ids."""
    return {id_: reason for reason, ids in DIFFERENCES.get(name, {}).items() for id_ in ids}


def steps(case: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each request with its response, for the steps that have both."""
    yield from ((step["request"], step["response"]) for step in case["steps"] if "response" in step)


def trees(answers: Any) -> list[Any]:
    """Return the objects of the response: one, or those of a watch's events."""
    listed = answers if isinstance(answers, list) else [answers]
    return [answer.get("object", answer) for answer in listed if isinstance(answer, dict)]


def filled_in(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {filled_in(name): filled_in(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [filled_in(item, key) for item in value]
    if value == "<time>":
        return "2030-01-02T03:04:05.678900Z" if key in _IN_MICROSECONDS else "2030-01-02T03:04:05Z"
    if isinstance(value, str):
        return _FILLED_IN.get(value, value.replace("${ns}", "<ns>"))
    return value
