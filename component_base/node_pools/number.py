"""Read a number of nodes. Pure."""

from typing import Final

from .errors import PoolError

MAX_SIMULATED_NODES: Final = 15_000
"""Three times as many as Kubernetes supports in one cluster."""
_MAX_DIGITS: Final = 9


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def read_count(text: str) -> int:
    """Return the number that some digits are."""
    digits = text.lstrip("0")
    return check_total(int(digits or "0") if len(digits) <= _MAX_DIGITS else MAX_SIMULATED_NODES + 1)


def check_total(count: int) -> int:
    """Return a number of nodes; raise PoolError if it is too large."""
    if count > MAX_SIMULATED_NODES:
        raise PoolError(f"at most {MAX_SIMULATED_NODES} nodes can have addresses")
    return count
