"""Rule: a module's name says what it contains; generic names such as `utils` are refused."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.source import Finding, Module

SHARED_BY_KINDS = "apiserver/kinds/common/"
"""The only folder that may be called `common`: code that several kinds of objects share."""
NAMELESS = frozenset({"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"})


def check(module: Module) -> Iterator[Finding]:
    path = module.path.replace(SHARED_BY_KINDS, "")
    for part in PurePosixPath(path).with_suffix("").parts:
        if part in NAMELESS:
            yield Finding(1, f"'{part}' says nothing of what it owns: name it after that")
