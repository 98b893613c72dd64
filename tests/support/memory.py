"""Limit the memory of the test process, and the duration of its garbage collections.

Collection creates 21,000 items with parameters that live to the end: they are frozen, so the collector skips them.
Memory that a large test released is returned to the system; otherwise the C library keeps it.
"""

import ctypes
import gc
from pathlib import Path

import pytest

GROWTH = 150 << 20
"""Growth in bytes since the last time, after which memory is returned."""
INTERVAL = 16
"""The tests between two looks at the memory."""
_PAGE = 4096
_STATM = Path("/proc/self/statm")

gc.disable()  # until everything is collected


def resident():
    """Return the resident memory in bytes; 0 where the system does not report it."""
    return int(_STATM.read_text().split()[1]) * _PAGE if _STATM.exists() else 0


class Trimmer:
    def __init__(self):
        self._after_last = resident()
        self._tests = 0
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self):
        self._tests += 1  # asking costs as much as a tenth of a small test
        if self._tests % INTERVAL == 0 and self._trim is not None and resident() > self._after_last + GROWTH:
            gc.collect()
            self._trim(0)
            self._after_last = resident()


def pytest_collection_finish(session):
    gc.freeze()
    gc.enable()
    session.config.pluginmanager.register(Trimmer())
