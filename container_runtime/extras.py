"""Which distribution of mockube simulates a program that is missing here, so that a message can name it."""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Final

PROGRAMS_OF_EXTRAS: Final[Mapping[str, frozenset[str]]] = {
    "python": frozenset(["python", "python3", *(f"python3.{minor}" for minor in range(8, 15))])
}
"""The programs of each folder of `extras/`."""


def missing_distribution(program: str) -> str:
    """Return the distribution that would simulate a program; "" if none does, or if it is installed."""
    name = program.rpartition("/")[2]
    extra = next((extra for extra, programs in PROGRAMS_OF_EXTRAS.items() if name in programs), "")
    return f"mockube-{extra}" if extra and not _is_installed(extra) else ""


@cache
def _is_installed(extra: str) -> bool:
    try:
        return find_spec(f"mockube.extras.{extra}") is not None
    except ModuleNotFoundError:  # without the folder of all extras
        return False
