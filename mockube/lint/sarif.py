"""SARIF 2.1.0, the format of code scanning: the parts that all reports share."""

import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

from .machine_reports import printable_json

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT: Final = "%SRCROOT%"
"""GitHub's name for the root of the repository."""


def sarif(command: str, rules: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> str:
    """Return a report with one run of a command."""
    driver = {"name": f"mockube {command}", "version": version("mockube"), "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}
    tree = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return printable_json(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode())


def rule_name(rule: str) -> str:
    """Return the name of a rule for people: its id in one word."""
    return "".join(map(str.capitalize, rule.split("-")))


def location(path: str, line: int) -> dict[str, Any]:
    """Return a line of a file whose path is relative to the root of the repository, or absolute."""
    uri = quote(path.encode(errors="surrogateescape"))
    artifact = {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": _ROOT}
    return {"artifactLocation": artifact, "region": {"startLine": line}}


def relative_path(path: Path) -> str:
    """Return a path relative to the working folder if it is in it."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return os.path.normpath(path)
