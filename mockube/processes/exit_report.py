"""Why a process has ended: by which code, and what it complained about last, without the head that logs have."""

import re
from pathlib import Path
from typing import Final

from mockube.processes.child_processes import Program

_CONTENT: Final = re.compile(r"[IW]\d{4} ")
"""A line of one who does not complain."""
_HEAD: Final = re.compile(r"^[EF]\d{4} \S+ +\d+ \S+?\] |^.*?: error: |^mockube: ")
_TAIL_BYTES: Final = 4096


def obituary(program: Program, code: int) -> str:
    said = last_words(program.log) if program.log is not None else ""
    return f"the {program.name} has ended with code {code}{f': {said}' if said else ''}"


def last_words(log: Path) -> str:
    """Nothing, if it did not complain."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return "" if not lines or _CONTENT.match(lines[-1]) else _HEAD.sub("", lines[-1])
