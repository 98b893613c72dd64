"""Minor releases as a user writes them, and as the report prints them: `1.29-1.31, 1.33`. Pure."""

from argparse import ArgumentTypeError
from collections.abc import Collection, Sequence
from typing import Final

from mockube.apimachinery.schema.minors import MINORS
from mockube.component_base.release_options import read_minor

ALL: Final[Sequence[str]] = MINORS[::-1]
"""All supported minors, from oldest to newest."""


def read_minors(text: str) -> Sequence[str]:
    """Read minors and ranges, such as `1.29-1.31,1.33` or `1.31-`; return them from oldest to newest."""
    selected = {minor for part in text.split(",") for minor in _read_part(part.strip())}
    return [minor for minor in ALL if minor in selected]


def _read_part(text: str) -> Sequence[str]:
    if text == "all":
        return ALL
    first, dash, last = (part.strip() for part in text.partition("-"))
    if not dash:
        return [read_minor(first)]
    start = ALL.index(read_minor(first)) if first else 0
    end = ALL.index(read_minor(last)) if last else len(ALL) - 1
    if start > end:
        raise ArgumentTypeError(f"{text} begins after its end: write {last}-{first}")
    return ALL[start : end + 1]


def format_minors(minors: Collection[str]) -> str:
    """Return minors as text, those that follow each other as a range."""
    runs: list[list[str]] = []
    for previous, minor in zip((None, *ALL), ALL, strict=False):
        if minor not in minors:
            continue
        if runs and runs[-1][-1] == previous:
            runs[-1].append(minor)
        else:
            runs.append([minor])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
