"""When an operator tries again, as it has printed: kopf says `and will try again in 60 seconds`."""

import re
from typing import Final

_ANNOUNCED: Final = re.compile(
    r"(?:try again|retry|retrying|requeue|requeuing) (?:in|after) ([0-9]{1,6})(?:\.[0-9]{1,6})? ?s(?:ec|\b)",
    re.IGNORECASE,
)


def announced_seconds(log: str) -> float:
    """Return the longest time after which an operator tries again, as it has printed; 0 if it has not."""
    return max((float(each[1]) for each in _ANNOUNCED.finditer(log)), default=0.0)
