"""A module is named after what it owns; a name that fits anything gathers everything."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.source import Finding, Module

NAMELESS = frozenset({"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"})


def check(module: Module) -> Iterator[Finding]:
    for part in PurePosixPath(module.path).with_suffix("").parts:
        if part in NAMELESS:
            yield Finding(1, f"'{part}' says nothing of what it owns: name it after that")
