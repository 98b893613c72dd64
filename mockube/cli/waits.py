"""The value of `--wait`: for what, and for how long."""

import math
from argparse import ArgumentTypeError
from typing import Final

from msgspec import Struct

from mockube.apimachinery.flags import seconds
from mockube.clusters.supervisor import Until

WAIT_SECONDS: Final = 60.0


class Wait(Struct, frozen=True, kw_only=True):
    until: Until = Until.NODES
    seconds: float = math.inf
    """Without a limit by default."""


def wait(text: str) -> Wait:
    """`nodes`, `30s` or `server/30s`."""
    target, slash, time = text.rpartition("/")
    if not slash and time in {*Until}:
        return Wait(until=Until(time))
    if slash and target not in {*Until}:
        raise ArgumentTypeError(f'"{target}" is not one of {", ".join(Until)}')
    return Wait(until=Until(target or Until.NODES), seconds=seconds(time))
