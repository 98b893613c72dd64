"""When a request may be sent again, and how long to wait before that. Pure."""

from typing import Final

from controller_manager.runtime.wire import Answer, NoAnswer, Request

MOST: Final = 10
"""How often a request is sent again when the server asks for that; upstream's."""
LONGEST: Final = 30.0
"""Seconds. Who is asked to wait longer is told so, and comes back in his own time."""
UNDONE: Final = frozenset({429, 500, 503})
"""Codes that, with a time to come back, say that nothing was done."""
AFTER_SILENCE: Final = (0.0, 1.0, 1.0)
"""Seconds before a read is sent again that had no answer; the first may only have met a connection at its end."""


def delay(request: Request, outcome: Answer | NoAnswer, tried: int) -> float | None:
    """Seconds until the next attempt after `tried` that failed, or None if there is none."""
    if isinstance(outcome, NoAnswer):
        return AFTER_SILENCE[tried - 1] if request.is_read and tried <= len(AFTER_SILENCE) else None
    asked = outcome.retry_after
    if asked is None or asked > LONGEST or tried > MOST:
        return None
    may = outcome.status in UNDONE or (request.is_read and outcome.status > 500)
    return asked if may else None
