"""Why a process has ended, from the end of its log: what it said last, without the head that logs have."""

import re
from pathlib import Path
from typing import Final

_HEAD: Final = re.compile(r"^[IWEF]\d{4} \S+ +\d+ \S+?\] |^.*?: error: ")
_TAIL_BYTES: Final = 4096


def last_words(log: Path) -> str:
    """Nothing, if it said nothing."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return _HEAD.sub("", lines[-1]) if lines else ""
