"""Who holds a cluster: one process at a time, until it ends, however it ends."""

import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from apimachinery.clock import Clock
from mockube.clusters.places import Place
from mockube.failure import Failure

_TRIES: Final = 20
_PAUSE: Final = 0.01
"""Whoever only looks whether it is held has it for a moment."""


class Held(Failure):
    """Somebody else runs the cluster."""


@asynccontextmanager
async def holding(place: Place, clock: Clock) -> AsyncIterator[None]:
    place.prepare()
    descriptor = os.open(place.lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for _ in range(_TRIES):
            if _lock(descriptor, fcntl.LOCK_EX):
                break
            await clock.sleep(_PAUSE)
        else:
            raise Held(f'"{place.name}" runs already')
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
