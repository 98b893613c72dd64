"""Keep the process that runs the tests small, and its garbage collections short.

What collecting makes, 21,000 items and their parameters, lives to the end: it is frozen, so that no collection looks at it.
Memory that a large test let go is given back to the system, where the C library keeps it otherwise.
"""

import ctypes
import gc
from pathlib import Path

import pytest

GROWTH = 150 << 20
"""Bytes more than after the last time: then memory is given back."""
_PAGE = 4096
_STATM = Path("/proc/self/statm")

gc.disable()  # until everything is collected


def resident():
    """Bytes that the process has in memory; 0 where the system does not say."""
    return int(_STATM.read_text().split()[1]) * _PAGE if _STATM.exists() else 0


class Trimmer:
    def __init__(self):
        self._after_last = resident()
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self):
        if self._trim is not None and resident() > self._after_last + GROWTH:
            gc.collect()
            self._trim(0)
            self._after_last = resident()


def pytest_collection_finish(session):
    gc.freeze()
    gc.enable()
    session.config.pluginmanager.register(Trimmer())
