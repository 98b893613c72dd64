"""The routine for a new minor release, in steps; `docs/guides/new-minor.md` describes it.

A step is a function of `STEPS`. It prints what it found, and returns a summary.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from tools.minors.comparison import Group, changes, groups, read_declarations, report
from tools.minors.gomodules import Release
from tools.minors.owners import FILE, read_owners
from tools.minors.upstream import upstream_files

Step: TypeAlias = Callable[[Release, argparse.Namespace], str]


def compare(release: Release, options: argparse.Namespace) -> str:
    """Print the declarations that differ from the current release, beside the files of ours with the same rules."""
    old, new = upstream_files(options.since), upstream_files(release)
    found = changes(read_declarations(old), read_declarations(new))
    chosen = [
        group
        for group in groups(found, read_owners(FILE.read_text()))
        if not options.only or any(path.startswith(options.only) for path in group.owner.paths)
    ]
    for line in report(chosen, diffs=options.diff):
        print(line)
    return f"{len({*old, *new})} files; {_size(chosen)}"


def _size(chosen: list[Group]) -> str:
    declarations, lines = sum(len(group.changes) for group in chosen), sum(group.lines for group in chosen)
    return f"{lines} lines of {declarations} declarations differ, in {len(chosen)} groups"


STEPS: Final[Mapping[str, Step]] = {"compare": compare}
"""In their order."""


def run_steps(release: Release, options: argparse.Namespace) -> None:
    for name in [options.step] if options.step else STEPS:
        start = time.monotonic()
        summary = STEPS[name](release, options)
        print(
            f"{name}: {options.since.version} to {release.version}: {summary}; {time.monotonic() - start:.0f} s"
        )
