"""Request contexts for strategies, at a fixed time."""

from datetime import UTC, datetime

from mockube.apiserver.kinds.strategy import StrategyContext
from mockube.apiserver.user import User

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_TEXT = "2030-01-02T03:04:05Z"


def request(user=None, warnings=None):
    """`warnings` is a list to which the warnings for the client are appended."""
    warnings = [] if warnings is None else warnings
    return StrategyContext(user=user or User(name="ada"), now=NOW, warn=warnings.append)
